// Names that would be taken for markup, scripts or other names, wherever they are shown.
import assert from 'node:assert/strict';

async function harmless(stage, page) {
	const found = await page.evaluate(() => ({
		hit: window.hit ?? null,
		scripts: [...document.scripts].map(script => script.getAttribute('src')).filter(src => !src?.startsWith('/assets/')),
		handlers: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes].filter(a => /^on/.test(a.name)).map(a => `${e.localName} ${a.name}`)),
		links: [...document.querySelectorAll('[href], [src]')].map(e => e.getAttribute('href') ?? e.getAttribute('src')).filter(to => /^\s*(javascript|data:text)/i.test(to)),
		elements: [...document.querySelectorAll('img[src="x"], b[onclick]')].length,
		// A character that turns the direction of what follows must not reach beyond its name.
		turned: [...document.querySelectorAll('main *')].filter(e => !e.childElementCount && /[\u202a-\u202e\u2066-\u2069]/.test(e.textContent) &&
			!['bdi', 'textarea', 'option', 'code', 'pre'].includes(e.localName)).map(e => e.outerHTML.slice(0, 100)),
	}));
	assert.deepEqual(found, {hit: null, scripts: [], handlers: [], links: [], elements: 0, turned: []});
}

export async function pages(stage, {paths}) {
	const page = await stage.open(paths[0], {width: 360, height: 740, allow: [/\b404\b.*\?test=/]}); // some are no test's name
	for (const path of paths) {
		if (path !== paths[0])
			await page.goto(path);
		await stage.settled(page);
		await harmless(stage, page);
		await stage.fits(page);
	}
}
