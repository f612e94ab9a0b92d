// The pictures of the README (docs/screenshots.py).
export async function readme(stage, {id, now}) {
	for (const [path, name, height] of [['/', 'inbox', 860], [`/change/${id}`, 'change', 1000]]) {
		const page = await stage.open(path, {width: 1280, height, zoom: 1.5, now});
		await page.evaluate(() => Promise.all([...document.images].map(image => image.complete || new Promise(done => {
			image.onload = done;
			image.onerror = done;
			image.loading = 'eager';
		}))));
		if (name === 'change')
			await page.locator('.chart canvas').first().waitFor();
		await stage.look(page, name);
	}
}
