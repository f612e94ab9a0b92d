// The plots of a report: `hunter-c report --html` puts this behind dom.js and chart.js, into the same module. Where
// it does not run, the pictures stay.

for (const section of document.querySelectorAll('section.plot')) {
	const plot = JSON.parse(section.querySelector('script').textContent);
	const drawn = section.querySelector('.drawn');

	drawn.hidden = false;
	section.classList.add('zooms');
	createChart(drawn, plot, {label: section.querySelector('h2').textContent, scale: plot.scale});
}

for (const time of document.querySelectorAll('time')) {
	time.title = time.textContent;
	time.textContent = timeText(time.dateTime);
}
