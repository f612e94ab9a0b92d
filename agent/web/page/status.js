// What the agent waits for and what troubles it.
import {ago, badge, duration, facts, h, name, names, number, plain, replace, time, to} from './dom.js';
import {due, mark, table, watch} from './states.js';

const bytes = new Intl.NumberFormat('en', {maximumSignificantDigits: 3});

function size(value) {
	return value >= 1e9 ? `${bytes.format(value / 1e9)} GB` : value >= 1e6 ? `${bytes.format(value / 1e6)} MB` : `${bytes.format(value / 1e3)} kB`;
}

const sendStates = {
	idle: ['good', '✓', 'nothing waits'],
	waiting: ['idle', '◷', 'waits'],
	sending: ['idle', '→', 'sending'],
	retrying: ['bad', '↻', 'retrying'],
	misconfigured: ['bad', '✕', 'misconfigured'],
	'unknown receiver': ['bad', '?', 'unknown receiver'],
};

function receiverState(receiver) {
	if (receiver.elsewhere)
		return mark(['idle', '⇢', receiver.agent ? `sent by ${plain(receiver.agent, 60)}` : 'no agent has it yet']);
	const worst = ['unknown receiver', 'misconfigured', 'retrying', 'sending', 'waiting'].find(kind => receiver.destinations.some(found => found.state === kind));
	return mark(sendStates[worst ?? 'idle']);
}

function destination(found, several) {
	const failedLast = found.last_failed && (!found.last_sent || Date.parse(found.last_failed) >= Date.parse(found.last_sent));
	return h('li',
		several || found.destination ? [name(found.destination || 'its only one', 120), ': '] : null,
		found.waiting ? [h('strong', `${number(found.waiting)} ${found.waiting === 1 ? 'waits' : 'wait'}`), ' since ', time(found.since), ' (', ago(found.since), ')'] : 'nothing waits',
		found.next_attempt ? [', next attempt ', due(found.next_attempt)] : '',
		found.attempts ? `, ${number(found.attempts)} failed` : '',
		found.last_sent ? [', last sent ', ago(found.last_sent)] : '',
		found.problem ? h('div', {class: failedLast ? 'row-problem' : 'small quiet'}, `last problem `, ago(found.last_failed), ': ', name(found.problem, 600)) : null);
}

function receiverCard(receiver) {
	return h('li.card', {'data-receiver': receiver.name},
		h('div.card-line', h('div', h('strong', name(receiver.name, 100)), ' ', receiver.type ? badge(receiver.type) : null), receiverState(receiver)),
		receiver.events ? h('p.small.quiet', 'events: ', receiver.events.join(', ')) : null,
		receiver.destinations.length
			? h('ul.plain-list', receiver.destinations.map(found => destination(found, receiver.destinations.length > 1)))
			: h('p.small.quiet', receiver.elsewhere ? 'Another agent sends its messages.' : 'Nothing was sent since the agent was started.'),
		receiver.destinations_left_out ? h('p.small.quiet', `and ${number(receiver.destinations_left_out)} more destinations`) : null);
}

function conditions(route) {
	const parts = [];
	if (route.match)
		parts.push(h('span.matchers', name(route.match, 400)));
	if (route.at_least !== null)
		parts.push(`at least ${number(route.at_least)}%`);
	if (route.verdict)
		parts.push(`${route.verdict}s only`);
	if (route.events.length)
		parts.push(`events ${route.events.join(', ')}`);
	return parts.length ? parts.map((part, i) => [i ? ' · ' : '', part]) : h('span.quiet', 'everything');
}

function routeTree(route, above = null) {
	const same = above && route.receivers.join('\n') === above.receivers.join('\n');
	return h('li',
		h('div', {title: `${plain(route.file, 300)}:${route.line}`}, conditions(route), ' → ',
			route.receivers.length ? h('strong', names(route.receivers)) : h('span.warn', 'nobody'),
			same ? h('span.quiet.small', ' as above') : null,
			route.group_by.length ? h('span.quiet.small', ' grouped by ', names(route.group_by)) : null,
			route.continue ? h('span.quiet.small', ' and goes on') : null),
		route.routes.length ? h('ul', route.routes.map(inner => routeTree(inner, route))) : null);
}

function sourceState(source) {
	if (!source.up)
		return [mark(['bad', '✕', 'down']), h('div.small', 'since ', time(source.down_since))];
	return mark(source.failing ? ['soon', '◔', 'some tests fail'] : ['good', '✓', 'up']);
}

const sourceColumns = [
	['Source', 'wide', source => [to('/tests', {q: source.name}, name(source.name, 80)), ' ', badge(source.type),
		source.address ? h('div.small.quiet', name(source.address, 300)) : null,
		source.problem ? h('div.row-problem', name(source.problem, 400)) : null]],
	['State', 'bare', sourceState],
	['Tests', 'number', source => number(source.tests)],
	['Failing', 'number', source => number(source.failing)],
	['No new data', 'number', source => number(source.stale)],
];

function troubles(status) {
	const found = [];
	if (status.unready)
		found.push(['Not ready', status.unready]);
	if (status.state.problem)
		found.push(['The state cannot be written', status.state.problem]);
	if (!status.configuration.last_reload_successful)
		found.push(['The configuration was changed and could not be used', 'the one before is in use; hunter-c validate says why']);
	if (status.clock.wrong)
		found.push(['The clock is wrong', `it is ${duration(Math.abs(status.clock.ahead_seconds))} ${status.clock.ahead_seconds > 0 ? 'ahead of' : 'behind'} that of a server`]);
	return found.map(([what, why]) => h('p.panel.problem', {role: 'alert'}, h('strong', `${what}: `), name(why, 600)));
}

function draw(main, status, context) {
	const changes = status.changes, kept = ['candidate', 'confirmed', 'moved', 'withdrawn', 'recovered'];
	const receivers = [...status.receivers].sort((a, b) => b.waiting - a.waiting);
	replace(main, h('h1', 'Status'),
		troubles(status),
		h('h2', 'Receivers'),
		h('ul.cards.two', receivers.map(receiverCard),
			status.not_configured.destinations.length ? receiverCard({...status.not_configured, name: 'Not configured any more'}) : null),
		h('h2', 'Routes'),
		status.routes ? h('ul.tree', routeTree(status.routes)) : h('p.quiet', 'None: all receivers get everything, unless a test names its own (notify).'),
		status.routes_left_out ? h('p.quiet', `and ${number(status.routes_left_out)} more routes`) : null,
		h('h2', 'Sources'),
		status.sources.length ? table(sourceColumns, status.sources) : h('p.quiet', 'No test is monitored.'),
		h('div.columns',
			h('section', h('h2', 'Agent'), facts(
				['Version', `hunter-c ${status.version}`],
				['Libraries', Object.entries(status.libraries).map(([library, version]) => `${library} ${version}`).join(', ')],
				['Running since', time(status.started), ' (', ago(status.started), ')'],
				['Address', context.me.external_url ? h('a', {href: context.me.external_url}, name(context.me.external_url, 200)) : h('span.quiet', 'agent.external_url is not set')],
				['For monitoring', h('a', {href: '/metrics'}, 'metrics'), ', ', h('a', {href: '/-/ready'}, 'ready'), ', ', h('a', {href: '/-/healthy'}, 'healthy')])),
			h('section', h('h2', 'Configuration and state'), facts(
				['Configuration', h('code', name(status.configuration.path, 300))],
				['Loaded', time(status.configuration.loaded)],
				['Tests', h('a', {href: '/tests'}, number(status.configuration.tests)), `, ${number(status.configuration.groups)} groups`],
				['State', h('code', name(status.state.path, 300)), `, ${size(status.state.bytes)}`],
				['Changes', kept.map((kind, i) => `${i ? ', ' : ''}${number(changes[kind])} ${kind}`)],
				['Silenced now', h('a', {href: '/silences'}, number(changes.silenced))],
				['Last run', ago(changes.last_run), changes.missed_runs ? h('span.warn', `, ${number(changes.missed_runs)} missed`) : ', none missed']))));
}

export const show = (main, context) => watch(main, context, {title: 'Status', path: '/api/v1/status', seconds: 10, draw: status => draw(main, status, context), handlers: ['test']});
