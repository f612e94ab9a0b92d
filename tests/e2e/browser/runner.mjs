// Plays scenarios in one Chromium. chromium.py writes a line of JSON for each, {"scenario": "inbox.keys", "url": ...},
// and reads lines: {"ask": "restart", "with": ...} while it runs (the answer is a line, too), and {"problems": [...]} when it is
// over. A scenario is an exported function of the file that its name begins with.
//
//     node runner.mjs FOLDER-OF-NODE_MODULES CHROMIUM FOLDER-FOR-PICTURES
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {createInterface} from 'node:readline';

const [folder, executablePath, pictures] = process.argv.slice(2);
const need = createRequire(join(folder, 'package.json'));
const {chromium} = need('playwright-core');
const axe = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');
const LIMIT = 240_000; // ms of one scenario, less than chromium.py waits for it
const WAIT = 60_000; // of one step; the machine may be busy with other tests

const lines = createInterface({input: process.stdin})[Symbol.asyncIterator]();
const say = message => process.stdout.write(`${JSON.stringify(message)}\n`);

// All that one scenario does: its pages, and what went wrong in any of them.
class Stage {
	constructor(browser, url) {
		Object.assign(this, {browser, url, problems: [], contexts: [], pages: []});
	}

	// Asks chromium.py for something outside of the browser.
	async ask(what, more = null) {
		say({ask: what, with: more});
		const {value, done} = await lines.next();
		assert(!done, 'nobody answers');
		const answer = JSON.parse(value);
		if (answer.error)
			throw new Error(answer.error);
		return answer.answer;
	}

	// A page in a browser of its own, as one person has it. Whatever goes wrong there, unless `allow` (a list of
	// expressions) has it, fails the scenario: errors and warnings of the console, breaches of the policy, requests to
	// anywhere else, answers that are errors, dialogs.
	async open(path, {width = 1280, height = 900, scheme = 'light', user = null, zoom = 1, now = null, allow = []} = {}) {
		const context = await this.browser.newContext({
			viewport: {width, height}, colorScheme: scheme, locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce', deviceScaleFactor: zoom,
			baseURL: this.url, httpCredentials: user ? {username: user, password: 'other', send: 'always'} : undefined,
		});
		context.setDefaultTimeout(WAIT);
		this.contexts.push(context);
		const wrong = text => allow.some(known => known.test(text)) || this.problems.push(`${path}: ${text}`);
		context.on('console', message => ['error', 'warning'].includes(message.type()) &&
			wrong(`console: ${message.text()} (${message.location().url})`));
		context.on('weberror', error => wrong(`error: ${error.error().stack}`));
		context.on('dialog', dialog => { wrong(`dialog: ${dialog.message()}`); dialog.dismiss(); });
		context.on('request', request => /^(data|blob):/.test(request.url()) || new URL(request.url()).origin === this.url ||
			wrong(`request elsewhere: ${request.url()}`));
		context.on('response', answer => answer.status() >= 400 && wrong(`answer: ${answer.status()} ${answer.url()}`));
		await context.exposeBinding('tellBreach', (_, text) => wrong(`policy: ${text}`));
		await context.addInitScript(() => addEventListener('securitypolicyviolation', event =>
			window.tellBreach(`${event.violatedDirective}: ${event.blockedURI} ${event.sample} (${event.sourceFile}:${event.lineNumber})`)));
		if (now)
			await context.clock.setFixedTime(now);
		const page = await context.newPage();
		this.pages.push(page);
		await page.goto(path);
		await this.settled(page);
		return page;
	}

	// Until the page shows what it has, and waits for nothing more.
	async settled(page) {
		await page.locator('main :is(h1, h2)').first().waitFor();
		await page.waitForFunction(() => ![...document.querySelectorAll('.waiting')].some(element => element.checkVisibility()));
	}

	// Until it holds; `what` says what was waited for.
	async until(what, condition) {
		const end = Date.now() + WAIT;
		while (!await condition()) {
			if (Date.now() > end)
				throw new Error(`waited in vain: ${what}`);
			await new Promise(done => setTimeout(done, 50));
		}
	}

	// The next answer that the pattern fits waits until the function that it returns is called.
	async hold(page, pattern) {
		let go, first = true;
		const held = new Promise(done => { go = done; });
		await page.route(pattern, async route => {
			if (!first)
				return route.fallback();
			first = false;
			const answer = await route.fetch();
			await held;
			return route.fulfill({response: answer});
		});
		return go;
	}

	// Nothing sticks out of the window to the side.
	async fits(page) {
		const out = await page.evaluate(() => {
			const wide = document.documentElement.clientWidth;
			if (document.documentElement.scrollWidth <= wide)
				return null;
			return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > wide + 1 && e.checkVisibility())
				.slice(0, 5).map(e => `${e.localName}.${e.className} to ${Math.round(e.getBoundingClientRect().right)} of ${wide}: ${e.textContent.slice(0, 60)}`);
		});
		assert.equal(out, null, `too wide: ${out?.join('\n')}`);
	}

	// What axe finds serious, as lines; none is right. Of long lists the first rows stand for all.
	async accessible(page) {
		await page.evaluate(axe);
		const found = await page.evaluate(async () => {
			const {violations} = await window.axe.run({include: [['html']], exclude: [['tr:nth-child(n+12)'], ['li:nth-child(n+12)']]}, {resultTypes: ['violations']});
			return violations.filter(v => ['serious', 'critical'].includes(v.impact)).flatMap(v => v.nodes.slice(0, 3).map(node =>
				`${v.id}: ${node.target.join(' ')}: ${node.html.slice(0, 160)} ${node.failureSummary.replace(/\s+/g, ' ').slice(0, 200)}`));
		});
		assert.deepEqual(found, []);
	}

	async look(page, name) {
		await page.screenshot({path: join(pictures, `${name}.png`)});
	}

	async end() {
		for (const context of this.contexts)
			await context.close().catch(() => {});
	}
}

// What fails where nobody waits for it is a problem of the scenario that is played, and no end of all.
let lost;
process.on('unhandledRejection', error => lost(error));

async function play(browser, {scenario, url, more}) {
	const stage = new Stage(browser, url);
	const [file, name] = scenario.split('.');
	let timer;
	lost = error => stage.problems.push(error.stack);
	try {
		const module = await import(`./${file}.mjs`);
		assert(module[name], `there is no scenario ${scenario}`);
		await Promise.race([module[name](stage, more), new Promise((_, fail) => {
			timer = setTimeout(() => fail(new Error(`took more than ${LIMIT / 1000} s`)), LIMIT);
		})]);
	} catch (error) {
		stage.problems.unshift(error.stack);
	}
	clearTimeout(timer);
	if (stage.problems.length > 0)
		for (const [i, page] of stage.pages.entries()) {
			await stage.look(page, `${scenario}-${i + 1}`).catch(() => {});
			stage.problems.push(`picture: ${join(pictures, `${scenario}-${i + 1}.png`)}`);
		}
	await stage.end();
	return stage.problems;
}

// Nothing is looked up: what is not on the loopback does not exist.
const browser = await chromium.launch({executablePath, args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--disable-dev-shm-usage']});
say({ready: browser.version()});
for (;;) {
	const {value, done} = await lines.next();
	if (done)
		break;
	say({problems: [...new Set(await play(browser, JSON.parse(value)))]});
}
await browser.close();
