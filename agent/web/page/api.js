// Requests to the agent. Errors are sentences for people, as the agent has them.

// Status 0: the agent could not be reached. `answer` came with it, such as the changes of a 409; or null.
const problem = (text, status, answer) => Object.assign(new Error(text), {status, answer});

// `parameters`: an object or URLSearchParams; null and undefined are left out.
function query(parameters) {
	if (parameters instanceof URLSearchParams)
		return parameters.toString();
	const out = new URLSearchParams();
	for (const [name, value] of Object.entries(parameters ?? {}))
		if (value != null)
			out.set(name, value);
	return out.toString();
}

async function ask(path, options) {
	let answer;
	try {
		answer = await fetch(path, {credentials: 'same-origin', ...options});
	} catch (error) {
		if (error.name === 'AbortError')
			throw error;
		throw problem('The agent cannot be reached.', 0, null);
	}
	let body = null;
	try {
		body = await answer.json();
	} catch (error) {
		if (error.name === 'AbortError')
			throw error;
	}
	if (!answer.ok)
		throw problem(body?.error ?? `The agent answered with status ${answer.status}.`, answer.status, body);
	if (body === null)
		throw problem('The agent\'s answer cannot be read.', answer.status, null);
	return body;
}

export function get(path, parameters, signal) {
	const text = query(parameters);
	return ask(text ? `${path}?${text}` : path, {signal});
}

// To be aborted by itself, or with the signal.
export function stopper(signal) {
	const own = new AbortController();
	signal.addEventListener('abort', () => own.abort(), {signal: own.signal});
	return own;
}

// What was said is said, even if the page is left at once. Of more than that, browsers send nothing for pages that are gone.
export function post(path, parameters) {
	const body = new URLSearchParams(query(parameters));
	return ask(path, {method: 'POST', keepalive: body.toString().length < 60000, body});
}
