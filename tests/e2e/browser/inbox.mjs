// The list of changes: keys, many at once, what arrives while it is looked at.
import assert from 'node:assert/strict';

const row = (page, id) => page.locator(id ? `[data-change="${id}"]` : '[data-change]');

async function triage(page, id) {
	const answer = await page.request.get(`/api/v1/changes?limit=1&before=${Number(id) + 1}`);
	return (await answer.json()).changes[0].triage;
}

async function current(page) {
	return page.locator('[data-change][aria-current="true"]').getAttribute('data-change');
}

// The next one: j may have to load it.
async function next(stage, page) {
	const marked = () => page.evaluate(() => document.querySelector('[data-change][aria-current="true"]')?.dataset.change);
	const before = await marked();
	await page.keyboard.press('j');
	await stage.until('j goes on', async () => ![undefined, before].includes(await marked()));
	return current(page);
}

export async function keys(stage) {
	const page = await stage.open('/', {user: 'ann'});
	await row(page).first().waitFor();
	await page.keyboard.press('?');
	await page.locator('dialog[open]').waitFor();
	await page.keyboard.press('Escape');
	await page.locator('dialog[open]').waitFor({state: 'detached'});
	const said = {};
	for (const [key, state] of [['a', 'acknowledged'], ['e', 'expected'], ['i', 'ignored'], ['f', 'false']]) {
		const id = await next(stage, page);
		assert(!(id in said), `j goes to ${id} again`);
		await page.keyboard.press(key);
		await stage.until(`${id} is ${state}`, async () => (await triage(page, id)).state === state);
		assert.equal((await triage(page, id)).person, 'ann');
		said[id] = state;
	}
	await stage.until('k goes back where j came from', async () => { // rows that are settled leave the list
		const here = await current(page);
		await page.keyboard.press('j');
		const next = await current(page);
		await page.keyboard.press('k');
		return !(here in said) && next !== here && await current(page) === here;
	});
	const here = await next(stage, page); // o opens it at once, and both Back and u come back to it
	await page.keyboard.press('o');
	await page.waitForURL(`**/change/${here}`);
	await page.goBack();
	await stage.until('Back comes back to it', async () => await current(page) === here);
	await page.keyboard.press('o');
	await page.waitForURL(`**/change/${here}`);
	await page.locator('.chart').first().waitFor();
	await page.keyboard.press('u');
	await page.waitForURL(`**/?*at=${here}*`);
	await stage.until('u comes back to it', async () => await current(page) === here);
	await page.keyboard.press('/');
	assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
	await page.keyboard.type('jae'); // letters of a search are no commands
	assert.equal(await page.evaluate(() => document.activeElement.value), 'jae');
	for (const [id, state] of Object.entries(said))
		assert.equal((await triage(page, id)).state, state);
}

// Selects three of them.
async function choose(stage, page, ids) {
	const chosen = [];
	await row(page).first().waitFor();
	for (let i = 0; chosen.length < 3; i++) {
		assert(i < 20, `only ${chosen}`);
		const id = Number(await next(stage, page));
		if (ids.includes(id)) {
			await page.keyboard.press('x');
			chosen.push(id);
		}
	}
	return chosen;
}

export async function bulk(stage, {ids}) {
	const page = await stage.open('/', {user: 'ben'});
	const chosen = await choose(stage, page, ids);
	await page.getByRole('button', {name: 'Expected'}).first().click();
	const dialog = page.locator('dialog[open]');
	await stage.until('asked or done', async () => await dialog.count() > 0 || (await triage(page, chosen[0])).state === 'expected');
	if (await dialog.count() > 0)
		await dialog.locator('button.main').click();
	for (const id of ids)
		await stage.until(`${id} is said`, async () => ((await triage(page, id))?.state === 'expected') === chosen.includes(id));
}

// Somebody else was first with one of three: the other two can be triaged without it.
export async function touched(stage, {ids}) {
	const ann = await stage.open('/', {user: 'ann'}), ben = await stage.open('/', {user: 'ben', allow: [/409|ERR_FAILED/]});
	await ben.context().route('**/api/v1/events*', route => route.abort());
	await ben.reload();
	const [first, other, last] = await choose(stage, ben, ids);
	const status = await ann.evaluate(([id, version]) => fetch(`/api/v1/changes/${id}/triage`,
		{method: 'POST', body: new URLSearchParams({state: 'ignored', version})}).then(answer => answer.status), [other, (await triage(ann, other)).version]);
	assert.equal(status, 200);
	await ben.getByRole('button', {name: 'Fixed'}).first().click();
	await ben.locator('dialog[open]').getByRole('button', {name: 'Only the other 2'}).click();
	for (const id of [first, last])
		await stage.until(`${id} is fixed`, async () => (await triage(ann, id)).state === 'fixed');
	assert.equal((await triage(ann, other)).state, 'ignored');
}

// A key waits for what the one before loads: j goes on to a row that was not there, and x selects that one.
export async function order(stage) {
	const page = await stage.open('/', {user: 'ann'});
	await row(page).first().waitFor();
	await page.keyboard.press('k');
	const last = await current(page);
	const go = await stage.hold(page, '**/api/v1/inbox?*');
	await page.keyboard.press('j');
	await page.keyboard.press('x');
	go();
	await page.locator('[data-change].chosen').waitFor();
	const chosen = await page.locator('[data-change].chosen').getAttribute('data-change');
	assert.notEqual(chosen, last);
	assert.equal(await current(page), chosen);
}

// The first keys wait for the list, but not the one that leads to where letters are no keys.
export async function early(stage) {
	const page = await stage.open('/', {user: 'ann'});
	const first = await row(page).first().getAttribute('data-change');
	const go = await stage.hold(page, '**/api/v1/inbox?*');
	await page.reload();
	await page.locator('main h1').waitFor();
	await page.keyboard.press('j');
	await page.keyboard.press('x');
	await page.keyboard.press('/');
	assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
	go();
	await row(page, first).and(page.locator('.chosen')).waitFor();
}

// A change whose cause is known later is in another group then, and in that alone; who stands on it stays there.
export async function regrouped(stage) {
	const page = await stage.open('/', {user: 'ann'});
	const count = await row(page).count(), here = await next(stage, page);
	await page.keyboard.press('x');
	await page.route('**/api/v1/inbox?*', async route => {
		const response = await route.fetch(), json = await response.json();
		for (const group of json.groups)
			group.key = `other ${group.key}`;
		return route.fulfill({response, json});
	});
	await page.keyboard.press('r');
	await page.locator('[data-group^="other"] [data-change]').nth(count - 1).waitFor();
	assert.equal(await row(page).count(), count);
	assert.equal(await page.locator('.group:not([data-group^="other"])').count(), 0);
	assert.equal(await current(page), here);
	assert.equal(await page.locator('[data-change].chosen').getAttribute('data-change'), here);
}

// Answers that come late: the list as it was before something was said does not bring that back, and who stands on a row
// that leaves is on the next.
export async function late(stage) {
	const page = await stage.open('/', {user: 'ann'});
	await row(page).first().waitFor();
	const list = await stage.hold(page, '**/api/v1/inbox?*');
	const asked = page.waitForRequest('**/api/v1/inbox?*');
	await page.keyboard.press('r');
	await asked;
	const kept = await next(stage, page);
	await page.keyboard.press('a');
	await row(page, kept).locator('[data-triage="acknowledged"]').waitFor();
	const gone = await next(stage, page);
	const saying = await stage.hold(page, `**/api/v1/changes/${gone}/triage`);
	await page.keyboard.press('e');
	const after = await current(page);
	await page.keyboard.press('k');
	assert.equal(await current(page), gone);
	saying();
	await row(page, gone).waitFor({state: 'detached'});
	assert.equal(await current(page), after);
	const again = page.waitForRequest('**/api/v1/inbox?*'); // one waits for the other
	list();
	await page.keyboard.press('r');
	await again;
	assert.equal(await row(page, gone).count(), 0);
	assert.equal(await row(page, kept).locator('[data-triage="acknowledged"]').count(), 1);
}

export async function filter(stage) {
	const page = await stage.open('/');
	await row(page).first().waitFor();
	const all = await row(page).count();
	await page.keyboard.press('/');
	await page.keyboard.type('s0003');
	await stage.until('only one is left', async () => await row(page).count() === 1);
	assert(all > 1 && (await row(page).textContent()).includes('svc.s0003.latency'));
	assert((await page.evaluate(() => location.search)).includes('s0003'));
	await page.reload(); // the address has it all
	await row(page).first().waitFor();
	assert.equal(await row(page).count(), 1);
}

export async function arrival(stage) {
	const page = await stage.open('/', {user: 'vic'});
	await row(page).first().waitFor();
	await page.evaluate(() => { window.sameVisit = true; });
	assert.equal(await page.locator('main', {hasText: 'live.arrival'}).count(), 0);
	await stage.ask('arrive', 'live.arrival');
	await page.locator('[data-change]', {hasText: 'live.arrival'}).first().waitFor();
	assert.equal(await page.evaluate(() => window.sameVisit), true);
}

// The agent ends, and comes back with something new.
export async function lost(stage) {
	const page = await stage.open('/', {user: 'vic', allow: [/ERR_|Failed to load resource|answer: 503/]});
	await row(page).first().waitFor();
	await page.evaluate(() => { window.sameVisit = true; });
	await stage.ask('stop');
	await page.locator('#live.lost').waitFor();
	await stage.ask('return', 'live.back');
	await page.locator('#live.lost').waitFor({state: 'hidden'});
	await page.locator('[data-change]', {hasText: 'live.back'}).first().waitFor();
	assert.equal(await page.evaluate(() => window.sameVisit), true);
}

// The server decides who may do what, and what may not be done is not offered.
export async function viewer(stage) {
	const page = await stage.open('/', {user: 'vic'});
	await row(page).first().waitFor();
	const id = await row(page).first().getAttribute('data-change');
	for (const word of ['Acknowledge', 'Expected', 'Ignore', 'False alarm'])
		assert.equal(await page.getByRole('button', {name: word}).count(), 0, word);
	await page.keyboard.press('j');
	await page.keyboard.press('e');
	assert.notEqual((await triage(page, id))?.state, 'expected');
	const answer = await page.request.post(`/api/v1/changes/${id}/triage`, {form: {state: 'expected'}});
	assert.equal(answer.status(), 403);
}
