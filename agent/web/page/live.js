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

class Live {
	constructor(banner, id) {
		this.state = 'on';
		this.banner = banner;
		this.id = id; // of the last event that was seen
		this.all = new Set();
		this.timers = {};
		this.wasLost = false;
		this.away = false;
		this.unheard = false;
		addEventListener('pagehide', () => this.pause());
		addEventListener('pageshow', event => event.persisted && location.reload());
		document.addEventListener('visibilitychange', () => this.look());
		this.open();
	}

	// handlers: {change, triage, silence, test, configuration}(data), and again(), which means that
	// what is shown may lack something. All may be left out. Ends with the signal.
	listen(handlers, signal) {
		if (signal?.aborted)
			return;
		this.all.add(handlers);
		if (this.unheard)
			this.again();
		this.unheard = false;
		signal?.addEventListener('abort', () => this.all.delete(handlers));
	}

	tell(kind, data) {
		this.unheard ||= this.all.size === 0; // before the page has asked for what it shows
		for (const handlers of [...this.all])
			try {
				handlers[kind]?.(data);
			} catch (error) {
				reportError(error);
			}
	}

	again() {
		this.after('again', TOGETHER, () => this.tell('again'));
	}

	take(kind, id, data) {
		this.id = id || this.id;
		if (KINDS.includes(kind))
			this.tell(kind, data);
		else
			this.again(); // a reset, or too many to tell one by one
	}

	// Once, unless it is set already.
	after(name, ms, call) {
		this.timers[name] ??= setTimeout(() => {
			delete this.timers[name];
			call();
		}, ms);
	}

	drop(name) {
		clearTimeout(this.timers[name]);
		delete this.timers[name];
	}

	open() {
		this.tried = Date.now();
		this.source = new EventSource(`/api/v1/events?after=${encodeURIComponent(this.id)}`);
		this.source.addEventListener('open', () => this.well('on'));
		this.source.addEventListener('error', () => this.failed());
		for (const kind of [...KINDS, 'changes', 'reset'])
			this.source.addEventListener(kind, event => this.take(kind, event.lastEventId, JSON.parse(event.data)));
	}

	close() {
		this.source?.close();
		this.source = null;
	}

	failed() {
		this.after('lost', PATIENCE, () => this.lost('The connection to the agent is lost; what is shown may be old. Trying again …'));
		if (this.source?.readyState !== EventSource.CLOSED)
			return; // the browser tries again
		this.close();
		this.after('poll', this.state === 'on' ? 1000 : POLL, () => this.poll());
	}

	// Tells why there is no stream, and does without.
	async poll() {
		if (this.away)
			return;
		try {
			const answer = await get('/api/v1/events', {after: this.id});
			const lost = this.wasLost;
			for (const event of answer.events)
				this.take(event.event, event.id, event.data);
			this.id = answer.id;
			if (answer.reset)
				this.again();
			this.well('polling');
			if (lost || Date.now() - this.tried > TRY_STREAM)
				this.open();
			else
				this.after('poll', POLL, () => this.poll());
		} catch (error) {
			if (error.status === 401 || error.status === 403)
				this.lost('You are not signed in any more: load the page again.');
			else
				this.failed();
			this.after('poll', POLL, () => this.poll());
		}
	}

	well(state) {
		this.state = state;
		this.drop('lost');
		if (!this.wasLost)
			return;
		this.wasLost = false;
		this.say('The connection to the agent is back.', false);
		this.after('back', 4000, () => { this.banner.hidden = true; });
	}

	lost(text) {
		if (this.away)
			return;
		this.state = 'lost';
		this.wasLost = true;
		this.drop('back');
		this.say(text, true);
	}

	say(text, lost) {
		this.banner.textContent = text;
		this.banner.classList.toggle('lost', lost);
		this.banner.hidden = false;
	}

	// A stream is one of few connections that a browser has for an agent.
	look() {
		this.drop('hidden');
		if (document.hidden)
			this.after('hidden', HIDDEN, () => this.pause());
		else if (this.away)
			this.resume();
	}

	pause() {
		this.away = true;
		this.state = 'paused';
		this.close();
		this.drop('poll');
		this.drop('lost');
	}

	resume() {
		this.away = false;
		this.state = 'on';
		this.open();
	}
}

// `banner`: the element that says that the connection is lost. `id`: from where on (/api/v1/me).
export function connect(banner, id) {
	return new Live(banner, id);
}
