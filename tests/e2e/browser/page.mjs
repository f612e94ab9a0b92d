// What holds for every page.
import assert from 'node:assert/strict';

// A narrow window and a wide one, light and dark, a browser's checks of accessibility.
export async function looks(stage, {path}) {
	for (const [width, scheme] of [[360, 'dark'], [1920, 'light']]) {
		const page = await stage.open(path, {width, height: width === 360 ? 740 : 1080, scheme});
		await stage.fits(page);
		await stage.accessible(page);
		const name = path.replace(/[?].*|[^a-z]+/g, '') || 'inbox';
		await stage.look(page, `${name}-${width}`);
		if (width === 1920)
			await focus(page);
	}
}

// Every control can be reached and seen by Tab alone, and the first leads past the navigation.
async function focus(page) {
	await page.keyboard.press('Tab');
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
	const seen = new Set();
	for (let i = 0; i < 60; i++) {
		await page.keyboard.press('Tab');
		const focused = await page.evaluate(() => {
			const element = document.activeElement;
			if (element === document.body)
				return null;
			const box = element.getBoundingClientRect(), style = getComputedStyle(element);
			return {name: `${element.localName}.${element.className} ${element.textContent.slice(0, 30)}`, visible: box.width > 0 && box.height > 0,
				marked: style.outlineStyle !== 'none' || style.boxShadow !== 'none'};
		});
		if (!focused)
			break;
		assert(focused.visible && focused.marked, `focus is not seen on ${focused.name}`);
		seen.add(focused.name);
	}
	assert(seen.size >= 7, `only ${[...seen]}`);
}
