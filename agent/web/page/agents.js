// The agents that share this state: who lives, what each holds, how late it is.
import {ago, badge, h, many, name, number, replace, time} from './dom.js';
import {mark, table, watch} from './states.js';

const states = {
	alive: ['good', '✓', 'alive'],
	late: ['bad', '◷', 'late'],
	gone: ['idle', '✕', 'gone'],
};

// 0, 3, 4, 5 as "0, 3–5".
function ranges(shards) {
	const found = [];
	for (const shard of shards) {
		const last = found.at(-1);
		if (last && last[1] === shard - 1)
			last[1] = shard;
		else
			found.push([shard, shard]);
	}
	return found.map(([from, to]) => from === to ? `${from}` : `${from}–${to}`).join(', ');
}

const columns = first => [
	['Agent', 'wide', agent => [agent.address ? h('a', {href: agent.address}, name(agent.name, 80)) : name(agent.name, 80),
		agent.self ? [' ', badge('this one')] : null, agent.leader ? [' ', badge('leader')] : null,
		h('div.small.quiet', `hunter-c ${agent.version}`, agent.state !== 'gone' && agent.configuration !== first ? ', another configuration than the first' : ''),
		agent.late_renewals ? h('div.row-problem', `${many(agent.late_renewals, 'late renewal')} of its lease`) : null]],
	['State', 'bare', agent => [mark(states[agent.state]), h('div.small', agent.gone ? ['since ', time(agent.gone)] : ['renewed ', ago(agent.renewed)])]],
	['Shards', 'number', agent => agent.shards ? h('details', {'data-key': `shards ${agent.instance}`}, h('summary', number(agent.shards)), h('div.small', ranges(agent.held))) : '0'],
	['Tests', 'number', agent => number(agent.tests)],
	['Joined', 'word', agent => time(agent.joined)],
];

function draw(main, fleet) {
	const order = {alive: 0, late: 0, gone: 1};
	const agents = [...fleet.agents].sort((a, b) => order[a.state] - order[b.state] || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.instance - b.instance));
	const live = agents.filter(agent => agent.state === 'alive').length, free = fleet.shards - fleet.held;
	if (!fleet.shared) {
		replace(main, h('h1', 'Agents'), h('p.quiet', 'The state is a file, for this agent alone.'));
		return;
	}
	replace(main, h('h1', 'Agents'),
		h('p', `${number(live)} alive; ${number(fleet.held)} of ${number(fleet.shards)} shards are held.`),
		free ? h('p.panel.problem', {role: 'alert'}, `${number(free)} shards are free: their tests do not run until an agent takes them, within half a minute.`) : null,
		table(columns(agents[0].configuration), agents, agent => ({'data-agent': agent.name})),
		h('p.quiet.small', 'Tests: that the agent has in its configuration; it runs those of its shards. Times are by the clock of the database, ', time(fleet.time), '.'));
}

export const show = (main, context) => watch(main, context, {title: 'Agents', path: '/api/v1/agents', seconds: 5, draw: fleet => draw(main, fleet)});
