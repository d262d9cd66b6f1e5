// What everybody needs of a page, by the rules of axe-core that a call's page can break: headings, names,
// roles, landmarks, contrast, the size of what is pressed. `violations()` is a list of sentences.
globalThis.violations = () => {
  const found = [];
  const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && e.getClientRects().length > 0;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const called = (e) => `<${e.localName}${e.id ? ` id=${e.id}` : ''}${e.className && typeof e.className === 'string' ? ` class="${e.className}"` : ''}>`;
  const say = (rule, e, what = '') => found.push(`${rule}: ${called(e)} ${what}`.trim());
  const words = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}+]+/gu, ' ').trim();
  /** The text of an element for somebody who hears it, or for somebody who sees it. */
  const text = (e, heard) => [...e.childNodes].map((n) => {
    if (n.nodeType === 3) return n.data;
    if (n.nodeType !== 1 || !n.checkVisibility() || (heard ? n.getAttribute('aria-hidden') === 'true' : n.matches('.unseen'))) return '';
    return `${heard && n.getAttribute('aria-label') || text(n, heard)} `;
  }).join('');
  const name = (e) => {
    const by = e.getAttribute('aria-labelledby');
    if (by) return by.split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join(' ').trim();
    return (e.getAttribute('aria-label') || [...e.labels ?? []].map((l) => text(l, true)).join(' ') || text(e, true) || e.title || '').trim();
  };

  // Headings: one of level one, no level left out, none empty.
  const headings = all('h1, h2, h3, h4, h5, h6');
  const ones = headings.filter((h) => h.localName === 'h1');
  if (ones.length !== 1) found.push(`heading-one: there are ${ones.length} headings of level one`);
  headings.forEach((h, i) => {
    if (i > 0 && Number(h.localName[1]) > Number(headings[i - 1].localName[1]) + 1) say('heading-order', h);
    if (!words(h.textContent)) say('heading-empty', h);
  });

  // Names: everything that is pressed or filled in has one, and it contains what is seen.
  for (const e of all('button, a[href], input, select, textarea, [role=button]')) {
    if (!words(name(e))) say('name', e, 'has none');
    const seen = e.matches('input, select, textarea') ? '' : words(text(e, false));
    if (seen && !` ${words(name(e))} `.includes(` ${seen} `)) say('label-in-name', e, `is called "${name(e)}" and shows "${seen}"`);
  }

  // Roles and what stands in them.
  for (const e of all('ul, ol')) {
    if (e.role && e.role !== 'list') say('list', e, `is no list but a ${e.role}, with items in it`);
    for (const child of e.children) if (child.localName !== 'li') say('list', child, 'is no item');
  }
  for (const e of all('li')) if (!e.parentElement.matches('ul, ol, menu') || (e.parentElement.role ?? 'list') !== 'list') say('listitem', e);
  for (const e of document.querySelectorAll('[aria-labelledby], [aria-describedby], [aria-controls]')) {
    for (const attribute of ['aria-labelledby', 'aria-describedby', 'aria-controls']) {
      for (const id of (e.getAttribute(attribute) ?? '').split(' ').filter(Boolean)) if (!document.getElementById(id)) say('idref', e, `${attribute} names ${id}, which is not there`);
    }
  }
  const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) found.push(`duplicate-id: ${id}`);
  for (const e of document.querySelectorAll('[aria-hidden=true]')) {
    if ([e, ...e.querySelectorAll('*')].some((inside) => inside.tabIndex >= 0 && shown(inside))) say('aria-hidden-focus', e);
  }

  // Landmarks: one main, all that is seen within one, and none of the page's own inside another.
  const mains = all('main');
  if (mains.length !== 1) found.push(`landmark-main: there are ${mains.length}`);
  for (const e of all('aside, [role=complementary]')) if (e.parentElement.closest('main, nav, aside, section[aria-label], section[aria-labelledby]')) say('landmark-complementary', e, 'stands in another landmark');
  for (const e of document.body.children) if (shown(e) && !e.matches('main, nav, aside, header, footer, [role=alertdialog]') && text(e, true).trim()) say('region', e, 'stands in no landmark');

  // What scrolls can be scrolled with keys.
  for (const e of all('*')) {
    const { overflowY } = getComputedStyle(e);
    if (/auto|scroll/.test(overflowY) && e.scrollHeight > e.clientHeight + 1 && e.tabIndex < 0 && ![...e.querySelectorAll('*')].some((inside) => inside.tabIndex >= 0)) say('scrollable', e);
  }

  // No words lie over somebody's face.
  const faces = all('.tile .face').map((e) => e.getBoundingClientRect());
  for (const e of all(`.tile .held, .tile .plate, .tile .raised, .alone${innerWidth <= 700 ? ', .notice' : ''}`)) {
    const { left, right, top, bottom } = e.getBoundingClientRect();
    if (faces.some((face) => left < face.right - 1 && right > face.left + 1 && top < face.bottom - 1 && bottom > face.top + 1)) say('over-face', e, `"${e.textContent.trim().slice(0, 30)}"`);
  }

  // What is pressed is 24 x 24 at least, or has that much place to itself.
  const targets = all('button, a[href], input, select, textarea');
  for (const e of targets) {
    const a = e.getBoundingClientRect();
    if (a.width >= 23.5 && a.height >= 23.5) continue;
    const near = targets.some((other) => {
      const b = other.getBoundingClientRect();
      const [dx, dy] = [a.x + a.width / 2 - Math.min(Math.max(a.x + a.width / 2, b.x), b.right), a.y + a.height / 2 - Math.min(Math.max(a.y + a.height / 2, b.y), b.bottom)];
      return other !== e && Math.hypot(dx, dy) < 12;
    });
    if (near || a.height < 20) say('target-size', e, `is ${Math.round(a.width)} x ${Math.round(a.height)}`);
  }

  // On a phone 44 x 44, on the screen, under nothing else; and nobody presses what cannot be seen.
  const phone = innerWidth <= 700;
  const within = (e, x, y) => {
    for (let at = e; at && at !== document.body; at = at.parentElement) {
      const { left, right, top, bottom } = at.getBoundingClientRect();
      if (getComputedStyle(at).overflow !== 'visible' && (x < left || x > right || y < top || y > bottom)) return false;
    }
    return x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  };
  for (const e of targets) {
    const { left, right, width, height } = (e.matches('[type=checkbox]') ? e.closest('label') : e).getBoundingClientRect();
    if (phone && !e.matches('a, #kill') && (width < 43.5 || height < 43.5)) say('target-phone', e, `is ${Math.round(width)} x ${Math.round(height)}`);
    if (left < -1 || right > innerWidth + 1) say('off-screen', e, `goes from ${Math.round(left)} to ${Math.round(right)} of ${innerWidth}`);
    const cover = () => {
      const own = e.getBoundingClientRect();
      const [x, y] = [own.x + own.width / 2, own.y + own.height / 2];
      const above = within(e, x, y) && document.elementFromPoint(x, y);
      return above && !e.contains(above) && !above.closest('.menu, .notices, dialog') && !e.closest('label')?.contains(above) ? above : null;
    };
    if (!cover()) continue;
    const scrolled = [];
    for (let at = e.parentElement; at; at = at.parentElement) scrolled.push([at, at.scrollTop]);
    e.scrollIntoView({ block: 'center' }); // It may come out from under what stays.
    const above = cover();
    for (const [at, top] of scrolled) at.scrollTop = top;
    if (above) say('covered', e, `lies under ${called(above)}`);
  }
  for (const e of document.querySelectorAll('button')) {
    if (e.checkVisibility({ visibilityProperty: true }) && !shown(e) && e.getClientRects().length > 0 && getComputedStyle(e).pointerEvents !== 'none') say('invisible-target', e);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`scrolls-sideways: the page is ${document.documentElement.scrollWidth} wide, the screen ${innerWidth}`);

  // Words stay within their box, or end in dots.
  for (const e of all('body *')) {
    if (e.closest('.unseen, svg, select, textarea') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    if (e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).textOverflow !== 'ellipsis') say('cut-off', e, `"${e.textContent.trim().slice(0, 30)}" needs ${e.scrollWidth} of ${e.clientWidth}`);
  }

  // Contrast of text, 4.5 to 1, or 3 to 1 where it is large; over pictures the colour that is behind the text itself.
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const light = ([r, g, b]) => [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const layer = rgba(getComputedStyle(at).backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
      // Behind a tile's words is a picture; the worst for white letters is a white one.
      if (at.parentElement?.matches('.tile:not(.dark), .mirror:has(video:not([hidden]))')) { layers.push([255, 255, 255, 1]); break; }
    }
    return layers.reduceRight((ground, layer) => over(layer, ground), rgba(getComputedStyle(document.documentElement).backgroundColor));
  };
  const contrast = (e, colour, size, weight, alpha) => {
    const ground = behind(e);
    const ink = rgba(colour);
    const [a, b] = [light(over([ink[0], ink[1], ink[2], ink[3] * alpha], ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = size >= 24 || (size >= 18.66 && weight >= 700);
    if (ratio < (large ? 3 : 4.5)) say('contrast', e, `"${(e.textContent || e.placeholder).trim().slice(0, 30)}" has ${ratio.toFixed(2)} to 1`);
  };
  for (const e of all('body *')) {
    if (e.closest('.unseen, svg, video, .held, :disabled, option') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e);
    let alpha = 1;
    for (let at = e; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
    contrast(e, style.color, Number.parseFloat(style.fontSize), Number(style.fontWeight), alpha);
  }
  for (const e of all('input, textarea').filter((field) => field.placeholder && !field.value)) {
    const style = getComputedStyle(e, '::placeholder');
    contrast(e, style.color, Number.parseFloat(style.fontSize), Number(style.fontWeight), Number(style.opacity));
  }
  // The edge of a field is seen, 3 to 1.
  for (const e of all('input:not([type=checkbox]):not(:read-only), textarea, select')) {
    const [a, b] = [light(over(rgba(getComputedStyle(e).borderTopColor), behind(e.parentElement))), light(behind(e.parentElement))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 3) say('field-edge', e, `has ${((a + 0.05) / (b + 0.05)).toFixed(2)} to 1`);
  }
  return found;
};
