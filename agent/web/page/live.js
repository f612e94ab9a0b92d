// What happens at the agent, as it happens. One stream of events for the page, which the browser
// takes up again where it was. If the agent has no place for another stream, the page asks now and
// then; a page that nobody sees does neither, and catches up when it is looked at.
import {get} from './api.js';

const PATIENCE = 5000; // ms: shorter interruptions are not worth a word
const POLL = 10000;
const TRY_STREAM = 60000; // while polling
const HIDDEN = 60000;
const TOGETHER = 500; // ms: several reasons to load anew are one
const KINDS = ['change', 'triage', 'silence', 'test', 'configuration', 'bisection'];

let banner; // the element that says that the connection is lost
let last; // the id of the last event that was seen
let source, tried; // the stream, and when it was opened last
let streams = true, wasLost = false, away = false, unheard = false;
const all = new Set(), timers = {};

// `id`: from where on (/api/v1/me).
export function connect(element, id) {
	banner = element;
	last = id;
	addEventListener('pagehide', pause);
	addEventListener('pageshow', event => event.persisted && location.reload());
	document.addEventListener('visibilitychange', look);
	open();
	return {listen};
}

// handlers: {change, triage, silence, test, configuration}(data), and again(), which means that
// what is shown may lack something. All may be left out. Ends with the signal.
function listen(handlers, signal) {
	if (signal?.aborted)
		return;
	all.add(handlers);
	if (unheard)
		again();
	unheard = false;
	signal?.addEventListener('abort', () => all.delete(handlers));
}

function tell(kind, data) {
	unheard ||= all.size === 0; // before the page has asked for what it shows
	for (const handlers of [...all])
		try {
			handlers[kind]?.(data);
		} catch (error) {
			reportError(error);
		}
}

function again() {
	after('again', TOGETHER, () => tell('again'));
}

function take(kind, id, data) {
	last = id || last;
	if (KINDS.includes(kind))
		tell(kind, data);
	else
		again(); // a reset, or too many to tell one by one
}

// Once, unless it is set already.
function after(name, ms, call) {
	timers[name] ??= setTimeout(() => {
		delete timers[name];
		call();
	}, ms);
}

function drop(name) {
	clearTimeout(timers[name]);
	delete timers[name];
}

function open() {
	tried = Date.now();
	source = new EventSource(`/api/v1/events?after=${encodeURIComponent(last)}`);
	source.addEventListener('open', () => well(true));
	source.addEventListener('error', failed);
	for (const kind of [...KINDS, 'changes', 'reset'])
		source.addEventListener(kind, event => take(kind, event.lastEventId, JSON.parse(event.data)));
}

function close() {
	source?.close();
	source = null;
}

function failed() {
	after('lost', PATIENCE, () => lost('The connection to the agent is lost; what is shown may be old. Trying again …'));
	if (source?.readyState !== EventSource.CLOSED)
		return; // the browser tries again
	close();
	after('poll', streams ? 1000 : POLL, poll);
}

// Tells why there is no stream, and does without.
async function poll() {
	if (away)
		return;
	try {
		const answer = await get('/api/v1/events', {after: last});
		const back = wasLost;
		for (const event of answer.events)
			take(event.event, event.id, event.data);
		last = answer.id;
		if (answer.reset)
			again();
		well(false);
		if (back || Date.now() - tried > TRY_STREAM)
			open();
		else
			after('poll', POLL, poll);
	} catch (error) {
		if (error.status === 401 || error.status === 403)
			lost('You are not signed in any more: load the page again.');
		else
			failed();
		after('poll', POLL, poll);
	}
}

function well(stream) {
	streams = stream;
	drop('lost');
	if (!wasLost)
		return;
	wasLost = false;
	say('The connection to the agent is back.', false);
	after('back', 4000, () => { banner.hidden = true; });
}

function lost(text) {
	if (away)
		return;
	streams = false;
	wasLost = true;
	drop('back');
	say(text, true);
}

function say(text, lost) {
	banner.textContent = text;
	banner.classList.toggle('lost', lost);
	banner.hidden = false;
}

// A stream is one of few connections that a browser has for an agent.
function look() {
	drop('hidden');
	if (document.hidden)
		after('hidden', HIDDEN, pause);
	else if (away) {
		away = false;
		streams = true;
		open();
	}
}

function pause() {
	away = true;
	close();
	drop('poll');
	drop('lost');
}
