// Looks at a report in a browser: does anything overlap or stick out? What is wrong goes to the page's title, behind the sizes.
// Copied into a page by tests/cli/test_report_browser.sh. SPDX-License-Identifier: MIT
'use strict';
window.addEventListener('load', () => {
	const wrong = [];
	const width = document.documentElement.clientWidth;
	const say = (where, what) => wrong.push(where + ': ' + what);
	if (document.documentElement.scrollWidth > window.innerWidth)
		say('page', 'scrolls sideways, ' + document.documentElement.scrollWidth + ' > ' + window.innerWidth);
	const outside = (a, b, slack) =>
		a.left < b.left - slack || a.right > b.right + slack || a.top < b.top - slack || a.bottom > b.bottom + slack;
	const overlap = (a, b) =>
		Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
	let texts = 0;
	for (const figure of document.querySelectorAll('figure')) {
		const svg = figure.querySelector('svg');
		if (!svg)
			continue;
		const frame = svg.getBoundingClientRect();
		const boxes = [...svg.querySelectorAll('text')].map(text => ({text: text.textContent, box: text.getBoundingClientRect()}));
		texts += boxes.length;
		boxes.forEach((one, i) => {
			if (outside(one.box, frame, 1))
				say(figure.id, '"' + one.text + '" sticks out');
			for (const other of boxes.slice(i + 1))
				if (overlap(one.box, other.box))
					say(figure.id, '"' + one.text + '" and "' + other.text + '" overlap');
		});
		for (const shape of svg.querySelectorAll('polygon, path, rect, circle'))
			if (outside(shape.getBoundingClientRect(), frame, 3))
				say(figure.id, shape.tagName + ' sticks out');
		if (!boxes.length || boxes[0].box.height < 10)
			say(figure.id, 'its text is ' + (boxes.length ? boxes[0].box.height.toFixed(1) + ' pixels high' : 'missing'));
	}
	// Tables may be moved inside their frame; all else stays on the page.
	for (const element of document.querySelectorAll('body *:not(.table *)')) {
		const box = element.getBoundingClientRect();
		if (box.width > 0 && !element.closest('svg') && (box.right > width + 1 || box.left < -1))
			say(element.tagName, 'sticks out of the page: ' + element.textContent.slice(0, 40));
	}
	document.title = 'LOOKED ' + window.innerWidth + ' ' + document.querySelectorAll('figure').length + ' ' + texts + ' WRONG ' +
		wrong.length + (wrong.length ? ' ' : '') + wrong.slice(0, 8).join('; ');
});
