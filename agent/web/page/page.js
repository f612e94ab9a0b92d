// Starts a page: who is there, which page the address names, and that page's module.
import {get} from './api.js';
import {h, name, notice, plain, replace} from './dom.js';
import {connect} from './live.js';

const pages = [
	[/^\/$/, 'inbox.js', 'Inbox'],
	[/^\/change\/\d+$/, 'change.js', 'Change'],
	[/^\/explore$/, 'explore.js', 'Explore'],
	[/^\/clusters$/, 'clusters.js', 'Clusters'],
	[/^\/tests$/, 'tests.js', 'Tests'],
	[/^\/silences$/, 'silences.js', 'Silences'],
	[/^\/status$/, 'status.js', 'Status'],
	[/^\/agents$/, 'agents.js', 'Agents'],
];

const roles = ['anybody', 'viewer', 'triager', 'admin'];

function failed(main, error) {
	if (error.name === 'AbortError')
		return;
	replace(main, h('h1', 'That did not work'), h('p.problem', plain(error.message, 1000)),
		h('p', h('button', {onclick: () => location.reload()}, 'Try again')));
}

async function start() {
	const main = document.getElementById('main');
	const page = pages.find(([path]) => path.test(location.pathname));
	for (const link of document.querySelectorAll('header nav a'))
		if (link.getAttribute('href') === location.pathname)
			link.setAttribute('aria-current', 'page');
	if (!page) {
		replace(main, h('h1', 'There is no such page'), h('p', h('a', {href: '/'}, 'To the inbox')));
		return;
	}
	document.title = `${page[2]} · hunter-c`;
	const leaving = new AbortController();
	addEventListener('pagehide', () => leaving.abort());
	try {
		const [module, me] = await Promise.all([import(`./${page[1]}`), get('/api/v1/me', null, leaving.signal)]);
		document.getElementById('agents').hidden = !me.agent;
		replace(document.getElementById('person'), name(me.person, 40), ` (${me.role})`);
		const context = {
			me, // as /api/v1/me
			url: new URL(location.href),
			signal: leaving.signal, // aborted when the page is left
			live: connect(document.getElementById('live'), me.events), // what happens meanwhile
			may: role => roles.indexOf(me.role) >= roles.indexOf(role),
		};
		replace(main);
		await module.show(main, context);
	} catch (error) {
		failed(main, error);
	}
}

addEventListener('unhandledrejection', event => {
	if (event.reason?.name !== 'AbortError')
		notice(event.reason?.message ?? 'Something went wrong.', {problem: true});
});
start();
