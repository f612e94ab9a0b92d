// The plots of a report: `hunter-c report --html` puts this behind chart.js, into the same module. Where
// it does not run, the pictures stay.

const templateLink = (template, values) => {
	let known = Boolean(template);
	const url = known ? template.replace(/\{([^}]*)\}/g, (all, name) => {
		known = known && Boolean(values[name]);
		return encodeURIComponent(values[name] || '');
	}) : '';

	return known && /^https?:/i.test(url) ? url : null;
};

function reportLinks(point, first) {
	const commit = point.attributes.commit;
	const other = first ? first.attributes.commit : point.before;
	const [before, after] = first && first.time > point.time ? [commit, other] : [other, commit];
	const values = {commit, before, after, test: point.line.test, metric: point.line.metric};

	return [
		{text: 'commit', href: templateLink(point.line.commit_url, values)},
		{text: first ? 'compare with 1' : 'compare with the point before', href: before !== after ? templateLink(point.line.compare_url, values) : null},
	].filter(one => one.href);
}

for (const section of document.querySelectorAll('section.plot')) {
	const plot = JSON.parse(section.querySelector('script').textContent);
	const drawn = section.querySelector('.drawn');

	drawn.hidden = false;
	section.classList.add('zooms');
	createChart(drawn, plot, {label: section.querySelector('h2').textContent, scale: plot.scale, links: reportLinks});
}

for (const time of document.querySelectorAll('time')) {
	time.title = time.textContent;
	time.textContent = formatTime(Date.parse(time.dateTime));
}
