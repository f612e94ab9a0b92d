// Tests, and the clusters of their series.
import assert from 'node:assert/strict';

async function one(page, path, name) {
	return (await (await page.request.get(path)).json())[name][0];
}

// Found by a word, run by hand, and shown as it is configured but for what is secret.
export async function tests(stage, {test, query, secret}) {
	const page = await stage.open('/tests');
	const rows = page.locator('[data-test]');
	await rows.first().waitFor();
	await page.locator('main input[type=search]').fill(test);
	await stage.until('only one is left', async () => await rows.count() === 1);
	const state = () => one(page, `/api/v1/tests?test=${test}`, 'tests');
	const before = (await state()).last_run;
	await rows.getByRole('button', {name: 'Run now'}).click();
	await page.locator('.notice', {hasText: 'points'}).waitFor();
	assert.notEqual((await state()).last_run, before);

	await rows.getByRole('link').first().click();
	await page.locator('main', {hasText: query}).waitFor();
	await stage.settled(page);
	const text = await page.locator('main').textContent();
	assert(text.includes('***') && !text.includes(secret), text);
}

// The page draws itself again whenever a test has run: who is at a link with the keyboard stays there.
export async function focus(stage) {
	const page = await stage.open('/status', {user: 'vic'});
	await page.locator('main a[href="/-/healthy"]').focus();
	await page.evaluate(() => { window.before = document.activeElement; });
	await stage.until('it is drawn again', () => page.evaluate(() => !window.before.isConnected));
	assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), '/-/healthy');
}

// What is pressed while the page would be drawn again is still there when it is released, and gets the click.
export async function press(stage) {
	const page = await stage.open('/status', {user: 'vic'});
	const link = page.locator('main a[href="/-/healthy"]');
	await link.hover();
	await page.mouse.down();
	await page.evaluate(() => { window.before = document.querySelector('main a[href="/-/healthy"]'); });
	for (let i = 0; i < 3; i++)
		await page.waitForResponse('**/api/v1/status');
	assert.equal(await page.evaluate(() => window.before.isConnected), true);
	await page.mouse.up();
	await page.waitForURL('**/-/healthy');
}

export async function clusters(stage) {
	const page = await stage.open('/clusters');
	const card = page.locator('[data-change]').first();
	await card.waitFor();
	const id = await card.getAttribute('data-change');
	assert((await card.textContent()).includes('=gpu')); // what they share
	await card.getByRole('button', {name: 'Expected'}).first().click();
	const said = () => one(page, `/api/v1/changes?limit=1&before=${Number(id) + 1}`, 'changes');
	await stage.until('it is said', async () => (await said()).triage.state === 'expected');
	assert.equal((await said()).kind === 'cluster' || (await said()).members > 1, true);
}

// As somebody types matchers, what they select is shown; a mistake is explained in place.
export async function silences(stage, {matchers, selected}) {
	const page = await stage.open('/silences', {user: 'ben'});
	await page.getByRole('button', {name: 'New silence'}).click();
	const field = page.locator('[name=matchers]');
	await field.fill('test=~');
	await page.locator('main, dialog', {hasText: 'expected a value'}).first().waitFor();
	await field.fill(matchers);
	await page.locator('main, dialog', {hasText: selected}).first().waitFor();
	await page.locator('[name=reason]').fill('a new disk');
	await page.getByRole('button', {name: 'Silence', exact: true}).click();
	const row = page.locator('[data-silence]', {hasText: 'a new disk'});
	await row.waitFor();
	assert((await row.textContent()).includes('ben'));
}
