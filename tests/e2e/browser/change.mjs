// One change: said by one, seen by another; silenced; told apart by more than colour.
import assert from 'node:assert/strict';

async function record(page, id) {
	return (await (await page.request.get(`/api/v1/changes/${id}`)).json()).change;
}

const triage = (page, state) => page.locator(`main [data-triage="${state}"]`).first();

// What one says the other sees, without a reload; who says something on top of what he has not seen is told first.
export async function two(stage, {id}) {
	const ann = await stage.open(`/change/${id}`, {user: 'ann'});
	const ben = await stage.open(`/change/${id}`, {user: 'ben', allow: [/409|ERR_FAILED/]});
	await ben.evaluate(() => { window.sameVisit = true; });
	await ann.getByRole('button', {name: 'Acknowledge'}).first().click();
	await triage(ann, 'acknowledged').waitFor();
	await triage(ben, 'acknowledged').waitFor();
	assert.equal(await ben.evaluate(() => window.sameVisit), true);
	await ben.locator('main', {hasText: 'ann'}).waitFor();

	const go = await stage.hold(ben, `**/api/v1/changes/${id}?*`); // and what is said while the page comes
	await ben.reload();
	await ann.getByRole('button', {name: 'Ignore'}).first().click();
	await triage(ann, 'ignored').waitFor();
	go();
	await triage(ben, 'ignored').waitFor();

	await ben.context().route('**/api/v1/events*', route => route.abort());
	await ben.reload();
	await triage(ben, 'ignored').waitFor();
	await ann.getByRole('button', {name: 'Expected'}).first().click();
	await triage(ann, 'expected').waitFor();
	await ben.getByRole('button', {name: 'Infra'}).first().click();
	const asked = ben.locator('dialog[open]');
	await asked.waitFor();
	const text = await asked.textContent();
	assert(text.includes('ann') && text.includes('expected'), text);
	assert.equal((await record(ben, id)).triage.state, 'expected');
	await asked.getByRole('button', {name: 'Take over'}).click();
	await triage(ben, 'infra').waitFor();
	await triage(ann, 'infra').waitFor();
	assert.equal((await record(ann, id)).triage.person, 'ben');
}

// Keys that are pressed faster than the agent answers: one after the other.
export async function keys(stage, {id}) {
	const page = await stage.open(`/change/${id}`, {user: 'ann'});
	const before = (await record(page, id)).triage.version;
	const go = await stage.hold(page, `**/api/v1/changes/${id}/triage`);
	for (const key of ['a', 'e', 'z', 'u'])
		await page.keyboard.press(key);
	go();
	await page.waitForURL(url => url.pathname === '/');
	const {triage: {state, version}} = await record(page, id);
	assert.deepEqual([state, version], ['acknowledged', before + 3]);
}

export async function silence(stage, {id}) {
	const page = await stage.open(`/change/${id}`, {user: 'ann'});
	await page.getByRole('button', {name: /^Silence/}).first().click();
	const dialog = page.locator('dialog[open]');
	await dialog.waitFor();
	const reason = dialog.locator('[name=reason]');
	if (await reason.count())
		await reason.fill('moving to the other rack');
	await dialog.locator('button.main').click();
	await dialog.waitFor({state: 'hidden'});
	const made = (await (await page.request.get('/api/v1/silences')).json()).silences;
	assert.equal(made.length, 1);
	assert(made[0].matchers.includes((await record(page, id)).test) && made[0].person === 'ann' && made[0].state === 'active', JSON.stringify(made));

	await page.goto('/silences');
	const row = page.locator(`[data-silence="${made[0].id}"]`);
	await row.waitFor();
	assert((await row.textContent()).includes('moving to the other rack'));
	await row.getByRole('button', {name: /^End/}).click();
	const sure = page.locator('dialog[open]');
	const ended = async () => (await (await page.request.get('/api/v1/silences')).json()).silences.length === 0;
	await stage.until('asked or done', async () => await sure.count() > 0 || await ended());
	if (await sure.count())
		await sure.locator('button.main').click();
	await stage.until('it has ended', ended);
}

// Regressions and improvements have a shape and a word, too.
export async function verdicts(stage, {worse, better}) {
	for (const [id, word] of [[worse, 'worse'], [better, 'better']]) {
		const page = await stage.open(`/change/${id}`);
		const shown = await page.locator('main .verdict').first().textContent();
		assert(shown.includes(word) && /[▲▼◆]/.test(shown), shown);
	}
}

// A bisection while it runs, ended by a button; and asked for again, to its verdict.
export async function bisection(stage, {id, commit}) {
	const page = await stage.open(`/change/${id}`, {user: 'ann'});
	const section = page.locator('section[aria-label="Bisection"]');
	await section.getByText(/^Running: /).waitFor();
	await section.getByRole('button', {name: 'Cancel'}).click();
	await section.getByText(/^cancelled: /).waitFor();
	await stage.ask('go');
	await section.getByRole('button', {name: 'Bisect again'}).click();
	await section.locator(`[data-culprit="${commit}"]`).waitFor({timeout: 120000});
	const text = await section.textContent();
	assert(text.includes(`first bad: ${commit.slice(0, 7)}`), text);
	assert.equal(await section.getByRole('button', {name: 'Cancel'}).count(), 0);
}
