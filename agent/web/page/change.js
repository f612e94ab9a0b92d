// /change/ID: what every message links to. What changed, by how much, since when, by which commit,
// whether it is still so, who looks at it, and what can be done.
import {get, post, stopper} from './api.js';
import {ago, append, awaited, badge, duration, facts, h, many, name, notice, percent, plain, remember, replace, short, style, time, to, toChange, verdict} from './dom.js';
import {createChart, formatValue} from './chart.js';
import {changeLinks, pinsOf, pinsText} from './explore.js';
import {redraw, table} from './states.js';
import {silence} from './silence.js';
import {asWas, ask, keyboard, markSaid, person, personField, say, sayButtons, states, triageBadge} from './triage.js';

const FEW = 12, MOST = 100; // siblings

function commitLink(commit, url) {
	const text = h('code', {title: plain(commit, 200)}, short(commit));

	return url ? h('a', {href: url}, text) : text;
}

// As the agent has it, with the full stop that its errors do without.
function sentence(text) {
	const clean = plain(text, 600);

	return /[.!?…]$/.test(clean) ? clean : `${clean}.`;
}

const external = (href, text) => href ? h('a', {href}, text) : null;

// The difference as it is announced; of one without a size, the levels say it.
function size(change) {
	return verdict(change.regression, change.size, change.direction);
}

function interval(change) {
	if (change.size_low === null || change.size_high === null)
		return null;
	return [percent(change.size_low), ' to ', percent(change.size_high)];
}

// ---- What is seen at a glance

function card(title, ...content) {
	return h('div.card', h('dt', title), h('dd', content));
}

function sizeCard(change) {
	const trend = change.kind === 'trend';

	return card(trend ? 'Changed gradually' : 'Changed',
		h('div.large', size(change)),
		h('div', formatValue(change.level_before, change.unit), ' → ', formatValue(change.level_after, change.unit)),
		h('div.quiet', interval(change) ? ['95%: ', interval(change)] : 'no interval is known'));
}

function sinceCard(change) {
	const place = change.place_from !== change.place_to;

	return card('Since', h('div.large', ago(change.time)), h('div', time(change.time)),
		h('div.quiet', change.kind === 'trend' ? ['from ', time(change.place_from), ' to ', time(change.place_to)]
			: place ? ['95%: ', time(change.place_from), ' to ', time(change.place_to)]
				: 'at this very point'));
}

function commitCard(story) {
	const {change, links} = story, suspects = change.suspects;
	const from = suspects?.from ?? change.commit_before ?? change.version_before;
	const to = suspects?.to ?? change.commit_after ?? change.version_after;
	const at = suspects?.list?.findIndex(suspect => suspect.commit === to);

	if (!from && !to)
		return card('Commit', h('div.large', '–'), h('div.quiet', 'its points name no commit'));
	if (suspects && suspects.count === 0)
		return card('Commit', h('div.large', 'none'), h('div', 'nothing was deployed in between'),
			suspects.last?.commit || suspects.last?.version
				? h('div.quiet', 'the last one before: ', h('code', short(suspects.last.commit ?? suspects.last.version)), ', ', ago(suspects.last.time))
				: null);
	return card(suspects?.count > 1 ? `Commit: ${suspects.count} suspects` : 'Commit',
		h('div.large', to ? commitLink(to, links.commit && change.commit_after === to ? links.commit : links.suspects[at]) : '–'),
		h('div', from ? ['after ', h('code', {title: plain(from)}, short(from))] : null,
			links.compare ? [' ', external(links.compare, 'compare')] : null),
		suspects?.share ? h('div.quiet', `in ${Math.round(100 * suspects.share)}% of the members`) : null);
}

function stillCard(story) {
	const {change, test} = story;
	const stands = change.ends ? ['it is the end of ', toChange(change.ends, `change ${change.ends}`)] : 'it stands';
	const newest = story.last_point ? h('div.quiet', 'newest point ', ago(story.last_point)) : null;
	const [word, kind, more] = {
		candidate: ['not confirmed', 'warn', `${change.count_after} points after it`],
		confirmed: ['yes', '', stands],
		moved: ['yes', '', [stands, '; found at another time than at first']],
		withdrawn: ['withdrawn', 'quiet', 'no longer found: it was a false alarm'],
		recovered: ['no, it is over', 'better', null],
	}[change.state] ?? [change.state, '', null];
	let source = newest;

	if (story.ended)
		source = h('div.warn', 'the series ended ', ago(story.ended));
	else if (!test)
		source = h('div.warn', 'its test is not configured any more');
	else if (test.failing)
		source = [h('div.warn', 'its test fails'), newest];
	return card('Still so?', h('div', {class: `large ${kind}`}, word),
		change.state === 'recovered'
			? h('div', 'back to ', formatValue(change.recovered_level, change.unit), ' after ',
				duration((Date.parse(change.recovered) - Date.parse(change.time)) / 1000))
			: more ? h('div', more) : null,
		source);
}

function whoCard(story) {
	const {triage, owner} = story.change;
	const told = story.change.history.filter(event => event.event === 'announced');

	return card('Triage', h('div.large', triageBadge(triage.state)),
		triage.state !== 'open' || triage.version > 0
			? h('div', triage.state === 'acknowledged' ? [name(triage.owner ?? triage.person ?? '–', 60), ' acknowledged it ']
				: [triage.owner ? ['owner ', name(triage.owner, 60), '; '] : null, 'triaged by ', name(triage.person ?? '–', 60), ' '],
			ago(triage.time))
			: h('div', owner ? ['owner ', name(owner, 80)] : 'not triaged yet'),
		triage.until ? h('div.quiet', 'until ', time(triage.until)) : null,
		h('div.quiet', story.silence ? ['silenced until ', time(story.silence.until)]
			: told.length > 0 ? ['announced ', ago(told[0].at)]
				: {silent: 'recorded, not announced', held: 'announced once confirmed', pending: 'announcement pending'}[story.change.news] ?? 'not announced'));
}

function glance(story) {
	const {change} = story, {triage} = change;

	return [
		h('dl.cards', sizeCard(change), sinceCard(change), commitCard(story), stillCard(story), whoCard(story)),
		triage.note || triage.link ? h('blockquote.note', triage.note ? name(triage.note, 4000) : null,
			triage.link ? [' ', external(triage.link, plain(triage.link, 100))] : null) : null,
		story.silence ? h('p.panel.mark', 'A ', h('a', {href: '/silences'}, `silence (${story.silence.id})`),
			' of ', name(story.silence.owner ?? story.silence.person ?? '–', 60), ' holds its announcement until ', time(story.silence.until),
			story.silence.reason ? [': ', name(story.silence.reason, 300)] : '.') : null,
		story.test?.problem ? h('p.panel.mark', 'Its test fails, so the newest points may be missing: ', name(story.test.problem, 400)) : null,
		story.cluster ? h('p', 'It is part of ', toChange(story.cluster, 'a cluster of series that changed together'),
			', which was announced instead.') : null,
		change.members > 0 ? h('p', `${change.members} series changed together`, change.shared ? [': ', name(change.shared, 300)] : null,
			'. The size is their median; the levels are those of ', name(change.metric, 200), ', the nearest to their middle.') : null,
	];
}

// ---- What can be done

function actions(context, page) {
	const buttons = sayButtons(state => state ? page.say({state}) : page.ask());
	const element = h('section.actions', {'aria-label': 'Triage'}, h('div.bar', buttons,
		h('button', {onclick: () => page.silence()}, 'Silence'), personField(context)));

	return {
		element,
		busy(is) {
			for (const button of buttons)
				button.disabled = is;
		},
		update: ({change: {triage}}) => markSaid(buttons, triage.state),
	};
}

// ---- The plot

function exploreUrl(change, range) {
	const parameters = new URLSearchParams({test: change.test, metric: change.series});

	if (change.branch)
		parameters.set('branch', change.branch);
	if (range) {
		parameters.set('since', new Date(range[0]).toISOString());
		parameters.set('until', new Date(range[1]).toISOString());
	}
	return `/explore?${parameters}`;
}

// From the address: "1700000000000-1700003600000".
function rangeOf(url) {
	const found = /^(-?\d+)-(-?\d+)$/.exec(url.searchParams.get('range') ?? '');

	return found && Number(found[1]) < Number(found[2]) ? [Number(found[1]), Number(found[2])] : null;
}

// The stored points at once; then those of the source, which may be slow, down, or gone.
function plotSection(context) {
	const canvas = h('div.plot');
	const state = h('div.plot-state');
	const explore = h('a', {href: '#'}, 'Explore');
	const links = h('span.plot-links');
	const around = h('select', {'aria-label': 'Points', onchange: event => {
		remember({points: event.target.value === 'all' ? 'all' : null});
		range = null;
		fetchPoints();
	}}, h('option', {value: 'around'}, 'Points around it'), h('option', {value: 'all'}, 'All points'));
	const element = h('section', {'aria-label': 'Plot'}, canvas, state, h('div.bar.under', around, explore, links));
	let chart = null, fetching = null, range = rangeOf(context.url), view = null, shown = null, story = null;

	around.value = context.url.searchParams.get('points') === 'all' ? 'all' : 'around';

	function draw(plot, what) {
		shown = what;
		view = plot.from && plot.to ? [plot.from, plot.to] : null;
		explore.setAttribute('href', exploreUrl(story.change, range ?? view));
		if (chart) {
			chart.update(plot);
			return;
		}
		chart = createChart(canvas, plot, {
			linked: true, range, scale: plot.scale ?? 'auto', pins: pinsOf(context.url),
			changeLinks: change => (change.id === story.change.id ? [] : changeLinks(change)), label: `${plain(story.change.test)} ${plain(story.change.metric)}`,
			onRange(now) {
				range = now;
				remember({range: now ? `${Math.round(now[0])}-${Math.round(now[1])}` : null});
				explore.setAttribute('href', exploreUrl(story.change, now ?? view));
			},
			onPin: now => remember({pins: pinsText(now)}),
		});
	}

	function failed(text, again = true) {
		replace(state, h('p.panel.mark', sentence(text), ' ',
			shown === 'stored' ? 'Shown are the points that were stored when it was confirmed. ' : '',
			again ? h('button', {onclick: fetchPoints}, 'Try again') : null));
		if (!shown)
			replace(canvas, h('p.quiet.empty', 'There are no points to show.'));
	}

	async function fetchPoints() {
		const {change, test} = story;
		const all = around.value === 'all';

		fetching?.abort();
		if (!test || change.members > 0)
			return;
		const own = fetching = stopper(context.signal);
		const cancelled = () => {
			own.abort();
			failed('Not fetched: cancelled.');
		};
		const width = Math.max(300, Math.round(canvas.clientWidth * (globalThis.devicePixelRatio || 1)));
		try {
			const plot = await awaited(state, get('/api/v1/plot', all ? {test: change.test, metric: change.series, branch: change.branch, width}
				: {change: change.id, width}, own.signal), `Fetching the points of ${change.test}${test.source ? ` from ${test.source}` : ''} …`, cancelled, shown ? 300 : 0);
			replace(state);
			if (!plot.lines?.some(line => line.times.length > 0))
				failed('The source has no points there now.');
			else
				draw({...plot, mark: change.id}, all ? 'all' : 'around');
		} catch (error) {
			if (error.name !== 'AbortError')
				failed(error.message);
		}
	}

	context.signal.addEventListener('abort', () => chart?.destroy());
	return {
		element,
		start(first) {
			story = first;
			const {change, test, plot} = story;

			explore.setAttribute('href', exploreUrl(change, range ?? view));
			explore.hidden = !test || change.members > 0;
			around.hidden = !test || change.members > 0;
			replace(links, [[change.dashboard, 'Dashboard'], [change.runbook, 'Runbook']]
				.filter(([url]) => url).map(([url, text]) => [h('a', {href: url}, text), ' ']),
			h('a', {href: `/change/${change.id}.svg`}, 'Picture'));
			if (change.members > 0)
				drawMembers();
			else if (plot.lines[0].times.length > 0)
				draw(plot, 'stored');
			if (change.members > 0)
				return;
			if (!test)
				failed(`The test ${plain(change.test)} is not configured any more, so its points cannot be fetched.`, false);
			else
				fetchPoints();
		},
		// The change is another than it was drawn as.
		refresh(now) {
			const was = story;
			story = now;
			if (JSON.stringify(was.plot) !== JSON.stringify(now.plot))
				fetchPoints();
		},
		get range() { return (chart ? chart.view : range) ?? view; },
	};

	// A cluster has no points of its own: those of its members, each relative to its first level.
	function drawMembers() {
		const lines = story.siblings.filter(one => one.relations.includes('cluster')).slice(0, 8)
			.map(one => one.plot.lines[0]).filter(line => line.times.length > 0)
			.map(line => ({...line, name: `${line.test} ${line.metric}`, changes: []}));

		if (lines.length === 0) {
			failed('No points of its members are stored.', false);
			return;
		}
		lines[0].changes = [{...story.plot.lines[0].changes[0], before: null, after: null}];
		draw({...story.plot, unit: null, from: null, to: null, scale: 'relative', lines}, 'members');
	}
}

// ---- What is related to it

function siblingCard(one, seen) {
	const canvas = h('div.plot.small');
	const card = h('li.sibling',
		toChange(one.id, name(one.members > 0 ? `${one.test}: ${one.members} series` : `${one.test} ${one.metric}`, 80)),
		h('div', verdict(one.regression, one.size, one.direction), ' ', h('span.quiet', ago(one.time))),
		canvas,
		h('div.labels', one.state !== 'confirmed' && one.state !== 'moved' ? badge(one.state) : null, triageBadge(one.triage),
			h('span.quiet', one.relations.map(relation => `same ${relation}`).join(', '))));

	seen(canvas, one);
	return card;
}

function siblingsSection(context) {
	const element = h('section', {'aria-label': 'Related changes'});
	const charts = new Map();
	let drawnText = '';

	// Charts are made when they come into view.
	const watcher = new IntersectionObserver(entries => {
		for (const entry of entries) {
			if (!entry.isIntersecting)
				continue;
			watcher.unobserve(entry.target);
			make(entry.target, entry.target.sibling);
		}
	}, {rootMargin: '200px'});
	const clear = () => {
		watcher.disconnect();
		for (const chart of charts.values())
			chart.destroy();
		charts.clear();
	};

	function make(canvas, one) {
		if (one.plot.lines[0].times.length > 0)
			charts.set(canvas, createChart(canvas, one.plot, {small: true, linked: true, shareRange: false, label: plain(`${one.test} ${one.metric}`)}));
		else
			replace(canvas, h('span.quiet.empty', 'no points are stored'));
	}

	context.signal.addEventListener('abort', clear);
	return {
		element,
		update(story, all) {
			const text = JSON.stringify(story.siblings);

			if (text === drawnText)
				return;
			drawnText = text;
			clear();
			element.hidden = story.siblings.length === 0;
			const left = story.siblings_total - story.siblings.length;
			replace(element, h('h2', story.change.members > 0 ? 'Its members, and what is related to it' : 'What changed with it',
				h('span.quiet', ` ${story.siblings_total}`)),
			h('ul.siblings', story.siblings.map(one => siblingCard(one, (canvas, sibling) => {
				canvas.sibling = sibling;
				watcher.observe(canvas);
			}))),
			left > 0 && story.siblings.length < MOST
				? h('p', h('button', {onclick: all}, left + story.siblings.length <= MOST ? `Show all ${story.siblings_total}` : `Show ${MOST}`))
				: left > 0 ? h('p.quiet', `and ${left} others`) : null);
		},
	};
}

// ---- Suspects, and the commits between

const suspectColumns = links => [
	['Suspect', 'bare', ({commit, version}, i) => [commitLink(commit ?? version, links[i]), commit && version ? [' ', name(version, 60)] : null]],
	['Deployed, or first seen', 'bare', suspect => [time(suspect.time), suspect.age_seconds > 0 ? h('span.quiet', ` ${duration(suspect.age_seconds)} before it`) : null]],
];

const commitColumns = suspects => [
	['Commit', 'bare', ({commit, url}) => commitLink(commit, url)],
	['Subject', 'wide', ({commit, subject}) => [name(subject, 300),
		suspects.some(one => one.commit && (commit.startsWith(one.commit) || one.commit.startsWith(commit))) ? [' ', badge('suspect', 'warn')] : null]],
	['Author', 'bare', ({author}) => name(author, 60)],
	['Time', 'bare', commit => time(commit.time)],
];

function commitsSection(context) {
	const suspects = h('div'), commits = h('div');
	const element = h('section', {'aria-label': 'Commits'}, h('h2', 'Suspects and commits'), suspects, commits);
	let asked = '';

	async function ask(story) {
		try {
			const answer = await awaited(commits, get(`/api/v1/changes/${story.change.id}/commits`, null, context.signal), 'Reading the commits between …');
			if (!answer.configured)
				replace(commits, h('p.quiet', 'With the option ', h('code', 'repository'),
					' of the test, the commits in between are listed here.'));
			else if (answer.problem)
				replace(commits, h('p.quiet', 'The commits in between cannot be listed: ', name(answer.problem, 400)));
			else
				replace(commits, h('h3', `${answer.more ? 'The newest ' : ''}${many(answer.commits.length, 'commit')} from `, h('code', short(answer.from ?? '')), ' to ',
					h('code', short(answer.to ?? ''))),
				table(commitColumns(story.change.suspects?.list ?? []), answer.commits, ({commit}) => ({'data-commit': commit}), 'Commits'));
		} catch (error) {
			if (error.name === 'AbortError')
				throw error;
			replace(commits, h('p.quiet', 'The commits in between cannot be listed: ', plain(error.message, 400)));
		}
	}

	return {
		element,
		update(story) {
			const {change} = story, list = change.suspects?.list ?? [], left = (change.suspects?.count ?? 0) - list.length;
			const known = JSON.stringify([change.suspects, change.commit_before, change.commit_after]);

			if (known === asked)
				return;
			asked = known;
			element.hidden = !change.suspects && !change.commit_after && !change.version_after;
			replace(suspects, list.length > 0
				? table(suspectColumns(story.links.suspects), list, ({commit, version}) => ({'data-suspect': plain(commit ?? version)}), 'Suspects')
				: h('p.quiet', change.suspects ? ['Nothing was deployed between ', time(change.suspects.since), ' and ', time(change.suspects.until), '.']
					: 'What was deployed is not known.'),
			left > 0 ? h('p.quiet', `and ${left} others`) : null);
			if (change.commit_after || change.suspects?.to)
				ask(story);
		},
	};
}

// ---- The bisection of the change

const endWords = {ends_broken: 'an end cannot be measured', single: 'nothing to search', impossible: 'could not be made'};

const culpritColumns = [
	['First bad commit', 'bare', one => [commitLink(one.commit, null), one.broken ? [' ', badge('not testable', 'warn')] : null]],
	['Probability', 'bare', ({probability}) => [h('meter', {min: 0, max: 1, value: probability, 'aria-hidden': 'true'}),
		` ${(100 * probability).toFixed(probability < 0.995 && probability >= 0.005 ? 0 : 1)}%`]],
];

function bisectionSection(context) {
	const text = h('div'), bar = h('p.bar');
	const element = h('section', {'aria-label': 'Bisection', hidden: true}, h('h2', 'Bisection'), text, bar);
	let story = null, rows = [], known = '', offered = '';

	async function act(path, parameters) {
		await post(path, {...parameters, person: person(context)});
		await ask();
	}

	function show() {
		const {change, test} = story, [row] = rows, {culprit} = change, open = row && row.state !== 'over';
		const stands = (change.state === 'confirmed' || change.state === 'moved') && ['open', 'acknowledged'].includes(change.triage.state);

		element.hidden = !culprit && !row && !test?.bisects;
		replace(text, culprit ? [h('p.large', name(culprit.verdict, 400)),
			culprit.set.length > 0 ? table(culpritColumns, culprit.set, ({commit}) => ({'data-culprit': plain(commit)}), 'Credible set') : null] : null,
			open ? h('p', row.state === 'waiting' ? ['Waits for ', h('code', name(row.lab, 100)), ', asked for ', ago(row.asked), '.']
				: [`Running: ${row.runs} runs since `, time(row.begun), ' in ', h('code', name(row.lab, 100)), '.',
					row.cancelled ? ' It is being ended.' : null]) : null,
			!open && row && row.id !== culprit?.bisection ? h('p', `${endWords[row.end] ?? plain(row.end).replaceAll('_', ' ')}: `, name(row.verdict ?? row.cancelled ?? '', 400)) : null,
			!open && !row && !culprit ? h('p.quiet', 'Nobody has asked for one.') : null);
		// The button stays the same as long as it means the same: one may be pressing it.
		const offer = !context.may('triager') ? '' : open ? `Cancel ${row.id}` : test?.bisects && stands ? row ? 'Bisect again' : 'Bisect' : '';
		if (offer === offered)
			return;
		offered = offer;
		replace(bar, !offer ? null : open ? h('button', {onclick: () => act(`/api/v1/bisections/${row.id}/cancel`, {})}, 'Cancel')
			: h('button', {onclick: () => act('/api/v1/bisections', {change: change.id})}, offer));
	}

	async function ask() {
		const answer = await get('/api/v1/bisections', {change: story.change.id, limit: 1}, context.signal);

		rows = answer.bisections;
		show();
	}

	return {
		element,
		update(next) {
			const now = JSON.stringify([next.change.culprit, next.change.state, next.change.triage.state, next.test?.bisects]);

			story = next;
			if (now === known)
				return;
			known = now;
			show();
			ask().catch(() => {});
		},
		refresh: () => ask().catch(() => {}),
	};
}

// ---- History, details, why

const eventWords = {found: 'found', confirmed: 'confirmed', moved: 'found at another time', withdrawn: 'withdrawn: no longer found',
	returned: 'found again', announced: 'announced', recovered: 'over: the old level is back', grown: 'its size has changed',
	corrected: 'its suspects have changed', triaged: 'triaged', reopened: 'open again'};

function historySection(story) {
	const line = event => {
		if (event.event === 'announced')
			return ['announced to ', name(event.receiver, 60), event.destination ? [' ', name(event.destination, 80)] : null];
		if (event.event === 'triaged' || event.event === 'reopened')
			return [h('b', name(event.person ?? '–', 60)), ': ', name(event.detail ?? eventWords[event.event], 600),
				event.origin ? h('span.quiet', ' from ', name(event.origin, 80)) : null];
		return [eventWords[event.event] ?? plain(event.event),
			event.event === 'moved' ? [': ', time(event.time)] : null,
			event.reason ? h('span.quiet', event.due ? ' (' : ' (not reported: ', name(event.reason, 200), ')') : null];
	};

	return [h('h2', 'History'), h('ol.history', [...story.change.history].reverse().map(event => h('li', {'data-event': plain(event.event)},
		h('span.quiet', time(event.at)), ' ', line(event))))];
}

function detailsSection(story) {
	const {change} = story;
	const level = (mean, stddev, count) => [formatValue(mean, change.unit), ' ± ', formatValue(stddev, change.unit), `, ${count} points`];
	const attributes = Object.entries(change.attributes ?? {}).map(([key, after]) => {
		const before = change.attributes_before?.[key];
		return [name(key, 60), before !== undefined && before !== after ? [name(before ?? '–', 200), ' → '] : null, name(after ?? '–', 200)];
	});

	return [h('h2', 'Details'), facts(
		['Test', to('/tests', {test: change.test}, name(change.test))],
		['Series', name(change.series, 1000)],
		change.branch && ['Branch', name(change.branch)],
		['Direction', {1: 'higher is better', '-1': 'lower is better', 0: 'either way is a change'}[change.direction]],
		['Before', level(change.mean_before, change.stddev_before, change.count_before)],
		['After', level(change.mean_after, change.stddev_after, change.count_after)],
		['p-value', change.pvalue === null ? '–' : change.pvalue.toExponential(1)],
		change.slope !== null && ['Slope', formatValue(change.slope, change.unit), ' per point'],
		(change.explained_by || change.relative_to) && [change.explained_by ? 'At equal load of' : 'Relative to', name(change.explained_by ?? change.relative_to),
			change.other_changed ? `, which changed by ${percent(change.other_size)}` : ''],
		change.environment && ['Environment', name(change.environment)],
		...attributes,
		['Found in', `${many(change.runs, 'run')}, first `, time(change.first_seen)])];
}

const triedColumns = [
	['Place', 'bare', place => time(place.time)],
	['Change', 'number', place => percent(place.forward_change_percent)],
	['p-value', 'number', place => place.pvalue?.toExponential(1) ?? '–'],
	['Became', 'bare', place => plain(place.fate)],
	['Because', 'wide', place => name(place.reason ?? '', 200)],
];

function whySection(context) {
	const content = h('div');
	const element = h('details.why', {ontoggle: () => { if (element.open) ask(); }}, h('summary', 'Why was it announced, or not?'), content);
	let story = null, asked = false;

	function show(why) {
		const known = value => value != null;
		const power = side => why.power?.[side]?.smallest;
		const sides = ['up', 'down'].filter(side => known(power(side)));

		replace(content, h('p', h('b', plain(why.verdict.replaceAll('_', ' '))), ': ', name(why.reason, 800)),
			facts(['Points', `${why.points ?? '–'}`, why.detector ? [', judged by ', name(why.detector, 60)] : null],
				why.arrival && ['As the points arrived', ['found', 'told', 'lost'].filter(key => known(why.arrival[key]))
					.map(key => `${key === 'told' ? 'announced' : key} with point ${why.arrival[key]}`).join(', ') || 'never found'],
				sides.length > 0 && ['Smallest change announced here', sides.map(side => `${side} ${power(side)}%`).join(', ')]),
			why.tried?.length ? table(triedColumns, why.tried.slice(0, 20), place => ({class: place.meant ? 'meant' : null})) : null);
	}

	async function ask() {
		const {change, test} = story, stop = stopper(context.signal);

		if (asked)
			return;
		asked = true;
		try {
			show(await awaited(content, get('/api/v1/why', {test: change.test, metric: change.series, at: change.time}, stop.signal),
				`Running the detection again on the points of ${change.test} …`, () => stop.abort(), 0));
		} catch (error) {
			asked = false;
			replace(content, h('p.panel.mark', error.name === 'AbortError' ? 'Cancelled.' : plain(error.message, 600), ' ',
				test ? h('button', {onclick: ask}, 'Try again') : null));
		}
	}

	return {
		element,
		update(now) {
			story = now;
			element.hidden = !now.test || now.change.members > 0;
		},
	};
}

// ---- Neighbours: the list that one comes from

// As the inbox has left it in this tab; else what waits for somebody.
async function neighbours(id, signal) {
	try {
		const inbox = JSON.parse(sessionStorage.getItem('inbox') ?? 'null');
		if (inbox?.ids?.includes(id))
			return {ids: inbox.ids, search: inbox.search ?? ''};
	} catch {
		// not ours: as if there were none
	}
	const answer = await get('/api/v1/inbox', {open: true, limit: 50, rows: 20}, signal);
	return {ids: answer.groups.flatMap(group => group.changes.map(change => change.id)), search: ''};
}

// The inbox as it was, at the change.
function inboxUrl(list, id) {
	const parameters = new URLSearchParams(list.search);

	if (list.ids.includes(id))
		parameters.set('at', id);
	return `/?${parameters}`.replace(/\?$/, '');
}

function neighboursBar(list, id) {
	const at = list.ids.indexOf(id);
	const step = (to, text, key) => to === undefined ? h('span.quiet', text)
		: h('a', {href: `/change/${to}`, 'aria-keyshortcuts': key}, text, ' ', h('kbd', {'aria-hidden': 'true'}, key));

	return [h('a', {href: inboxUrl(list, id)}, 'Inbox'), at >= 0 ? h('span.quiet', `${at + 1} of ${list.ids.length}`) : null,
		step(at > 0 ? list.ids[at - 1] : undefined, 'previous', 'k'),
		step(at >= 0 ? list.ids[at + 1] : list.ids[0], 'next', 'j')];
}

// ---- The page

function heading(change) {
	return [name(change.test, 150), change.members > 0 ? ': ' : ' ', change.members > 0 ? `${change.members} series` : name(change.metric, 150), change.branch ? [' ', badge(change.branch)] : null,
		change.state !== 'confirmed' ? [' ', badge(change.state, change.state === 'recovered' ? 'better' : 'warn')] : null];
}

export async function show(main, context) {
	const id = Number(location.pathname.split('/')[2]);
	let story, limit = FEW, loading = null, lastUndo = null;

	style('change.css');
	style('chart.css');
	try {
		story = await get(`/api/v1/changes/${id}`, {limit}, context.signal);
	} catch (error) {
		if (error.status !== 404)
			throw error;
		replace(main, h('h1', `Change ${id}`), h('p', plain(error.message, 300)), h('p', h('a', {href: '/'}, 'To the inbox')));
		return;
	}

	const title = h('h1'), top = h('nav.bar.neighbours', {'aria-label': 'Neighbours'}), facts = h('section', {'aria-label': 'At a glance'});
	const history = h('section', {'aria-label': 'History'}), details = h('section', {'aria-label': 'Details'});
	const page = {
		async ask() {
			const wanted = await ask([story.change]);
			if (wanted)
				await page.say(wanted);
		},
		async say(wanted) {
			const before = story.change.triage;

			triage.busy(true);
			const {now, done} = await say([story.change], wanted, context);
			const change = {...story.change, triage: now.get(id)};
			if (done.length > 0) {
				const back = () => undo(before, change);
				const line = notice(`${plain(change.test, 60)} ${plain(change.metric, 60)}: ${change.triage.state}.`, {action: {text: 'Undo', run: back}});
				lastUndo = () => { line.remove(); return back(); };
			}
			story.change = change;
			update();
			triage.busy(false);
			await again();
		},
		async silence() {
			const words = {series: 'this series', test: 'the whole test', cluster: 'the group', environment: `everything in ${story.change.environment}`,
				commit: 'everything that this commit has changed'};
			const choices = story.matchers.map(one => ({text: plain(words[one.of] ?? one.of, 100), matchers: one.matchers}));
			if (await silence(context, {matchers: choices[0]?.matchers, for: '4h'}, choices))
				await load();
		},
	};
	const triage = actions(context, page);
	const plot = plotSection(context), siblings = siblingsSection(context), commits = commitsSection(context);
	const bisection = bisectionSection(context);
	const why = whySection(context);

	async function undo(before, change) {
		await say([change], asWas(before), context);
		await again();
	}

	const again = () => load().catch(() => {}); // that the agent cannot be reached is said once for all

	function update() {
		const {change} = story;

		document.title = `${change.size === null ? '' : `${percent(change.size)} `}${plain(change.test, 60)} ${change.members > 0 ? `${change.members} series` : plain(change.metric, 60)} · hunter-c`;
		replace(title, heading(change));
		replace(facts, glance(story));
		triage.update(story);
		replace(history, historySection(story));
		replace(details, detailsSection(story));
		commits.update(story);
		bisection.update(story);
		siblings.update(story, () => { limit = MOST; load(); });
		why.update(story);
	}

	// Several wishes at once are one request, and one more.
	function load() {
		const once = async () => {
			story = await get(`/api/v1/changes/${id}`, {limit}, context.signal);
			redraw(main, update);
			plot.refresh(story);
		};
		if (loading)
			return loading.then(() => loading ?? load());
		loading = once().finally(() => { loading = null; });
		return loading;
	}

	const listed = neighbours(id, context.signal).catch(() => ({ids: [], search: ''}));
	const go = async choose => {
		const {ids} = await listed, to = choose(ids, ids.indexOf(id));
		if (to !== undefined)
			location.assign(`/change/${to}`);
	};
	const keys = [
		[['j'], 'the next change of the inbox', () => go((ids, at) => ids[at + 1])],
		[['k'], 'the one before', () => go((ids, at) => ids[at - 1])],
		[['u'], 'back to the inbox', async () => location.assign(inboxUrl(await listed, id))],
		[['x'], 'explore the series', () => location.assign(exploreUrl(story.change, plot.range))],
		[['w'], 'why it was announced, or not', () => { why.element.open = !why.element.open; why.element.scrollIntoView({block: 'start'}); }],
	];

	if (context.may('triager'))
		keys.push(...states.filter(one => one.key).map(({state, action, key, hint}) => [[key], `${action}: ${hint}`, () => page.say({state})]),
			[['c'], 'triage with a note, an owner, a link or an end', () => { page.ask(); }],
			[['z'], 'undo the last triage', () => {
				const undone = lastUndo?.();
				lastUndo = null;
				return undone;
			}],
			[['s'], 'silence', () => { page.silence(); }]);
	keyboard(keys, context.signal, [[['←', '→'], 'in the plot: move the cursor; with Shift: pan'], [['+', '-', '0'], 'in the plot: zoom in, out, all'],
		[['Enter'], 'in the plot: pin the point'], [['[', ']'], 'in the plot: the change before, after']]);
	append(main, [top, title, facts, context.may('triager') ? triage.element : null, plot.element, siblings.element, bisection.element, commits.element,
		h('div.columns', history, details), why.element]);
	update();
	plot.start(story);
	listed.then(list => replace(top, neighboursBar(list, id)));

	context.live?.listen({
		change: item => { if (item.id === id || story.siblings.some(one => one.id === item.id)) load(); },
		triage: item => {
			if (item.id === id && item.version > story.change.triage.version && item.person && item.person !== (person(context) ?? context.me.person))
				notice(`${item.person}: ${item.triage}${item.owner ? `, owner ${item.owner}` : ''}`);
			if (item.id === id ? item.version > story.change.triage.version : story.siblings.some(one => one.id === item.id))
				load();
		},
		silence: () => load(),
		test: item => { if (item.name === story.change.test) load(); },
		bisection: item => {
			if (item.change !== id)
				return;
			bisection.refresh();
			if (item.state === 'over')
				load();
		},
		configuration: () => load(),
		again: () => load(),
	}, context.signal);
}
