// Plots: zoom, pan, pins; by the pointer and by keys.
import assert from 'node:assert/strict';

const range = async page => (await page.locator('.chart').first().getAttribute('data-range'))?.split(',').map(Number) ?? null;

async function plot(stage, path) {
	const page = await stage.open(path);
	const chart = page.locator('.chart').first();
	await chart.locator('.chart-host canvas').first().waitFor(); // what draws is loaded when it is needed; before, there is nothing to press
	const box = async () => JSON.stringify(await chart.locator('canvas').first().boundingBox());
	let last = await box(), same = 0;
	await stage.until('nothing above it moves it any more', async () => {
		const now = await box();
		same = now === last ? same + 1 : 0;
		last = now;
		return same >= 5;
	});
	const at = async (x, y = 0.5) => {
		const {x: left, y: top, width, height} = JSON.parse(await box());
		return [left + width * x, top + height * y];
	};
	return {page, chart, at};
}

async function drag(page, from, to) {
	await page.mouse.move(...from);
	await page.mouse.down();
	await page.mouse.move((from[0] + to[0]) / 2, to[1], {steps: 4});
	await page.mouse.move(...to, {steps: 4});
	await page.mouse.up();
}

export async function pointer(stage, {path}) {
	const {page, chart, at} = await plot(stage, path);
	assert.equal(await range(page), null);
	await drag(page, await at(0.4), await at(0.7));
	await stage.until('it is zoomed', async () => await range(page) !== null);
	const zoomed = await range(page);
	await stage.until('the address has it', () => /[?&](range|since)=/.test(page.url()));
	const address = page.url();

	await page.keyboard.down('Shift');
	await drag(page, await at(0.6), await at(0.5));
	await page.keyboard.up('Shift');
	await stage.until('it has moved', async () => (await range(page))[0] > zoomed[0]);
	const panned = await range(page);
	assert(Math.abs((panned[1] - panned[0]) / (zoomed[1] - zoomed[0]) - 1) < 0.05, `${zoomed} ${panned}`);

	await page.mouse.move(...await at(0.5));
	await page.mouse.wheel(0, -200);
	await stage.until('the wheel does something', async () => `${await range(page)}` !== `${panned}`);

	await page.mouse.dblclick(...await at(0.5));
	await stage.until('all is seen', async () => await range(page) === null);

	await page.mouse.click(...await at(0.5));
	await stage.until('there is a pin', async () => await chart.getAttribute('data-pins') === '1');
	const pin = await page.locator('.pin').first().textContent();
	assert(/\d/.test(pin), pin);

	await page.goto(address); // what somebody is sent
	await stage.settled(page);
	await page.locator('.chart canvas').first().waitFor();
	await stage.until('the same range', async () => {
		const now = await range(page);
		return now && Math.abs(now[0] - zoomed[0]) < 0.02 * (zoomed[1] - zoomed[0]);
	});
}

// Enter takes what was typed, not what was found before.
export async function search(stage, {words, test}) {
	const page = await stage.open('/explore');
	await page.locator('#found [role=option]').first().waitFor();
	const go = await stage.hold(page, `**/api/v1/tests?q=${words}&*`);
	await page.keyboard.type(words);
	await page.keyboard.press('Enter');
	go();
	await page.locator('.chips', {hasText: test}).waitFor();
	assert.equal(await page.locator('.chips li').count(), 1);
}

export async function keys(stage, {path}) {
	const {page, chart} = await plot(stage, path);
	await chart.locator('[tabindex="0"]').first().focus();
	await page.keyboard.press('+');
	await stage.until('zoomed by a key', async () => await range(page) !== null);
	const before = await range(page);
	await page.keyboard.press('Shift+ArrowRight');
	await stage.until('panned by a key', async () => (await range(page))?.[0] !== before[0]);
	await page.keyboard.press('0');
	await stage.until('out by a key', async () => await range(page) === null);
	await page.keyboard.press('ArrowLeft');
	await page.keyboard.press('Enter');
	await stage.until('pinned by a key', async () => await chart.getAttribute('data-pins') === '1');
	await page.keyboard.press('Escape');
	await stage.until('no pin', async () => !Number(await chart.getAttribute('data-pins')));
}
