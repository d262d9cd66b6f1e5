// Every language says everything that English says; the document knows only keys.

import { choose } from '/page/language.js';
import { lasted, listed, say } from '/page/words.js';
import ar from '/page/words/ar.js';
import de from '/page/words/de.js';
import en from '/page/words/en.js';
import operatorAr from '/operator/words/ar.js';
import operatorDe from '/operator/words/de.js';
import operatorEn from '/operator/words/en.js';
import { equal, ok, test } from './harness.js';

const pages = { call: { ar, de, en }, operator: { ar: operatorAr, de: operatorDe, en: operatorEn } };
const forms = (text) => (typeof text === 'string' ? [text] : Object.values(text));
const blanks = (text) => [...new Set(forms(text).flatMap((form) => [...form.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)))].sort();

for (const [page, languages] of Object.entries(pages)) {
  test(`every language of the ${page} has every key, in one order, with the same blanks`, () => {
    const { en } = languages;
    for (const [language, words] of Object.entries(languages)) {
      equal(Object.keys(words), Object.keys(en), language);
      for (const [key, text] of Object.entries(words)) {
        equal(typeof text, typeof en[key], `${language} ${key}`);
        equal(blanks(text).filter((name) => name !== 'count'), blanks(en[key]).filter((name) => name !== 'count'), `${language} ${key}`);
        for (const form of forms(text)) ok(form.trim() === form && form !== '', `${language} ${key}: ${form}`);
      }
    }
  });

  test(`every language of the ${page} has a form for each of its plurals`, () => {
    const { en } = languages;
    for (const [language, words] of Object.entries(languages)) {
      const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
      for (const [key, text] of Object.entries(words)) {
        if (typeof text === 'string') continue;
        equal(Object.keys(text).sort(), [...pluralCategories].sort(), `${language} ${key}`);
        if (blanks(en[key]).includes('count')) ok(text.other.includes('{count}'), `${language} ${key}: ${text.other}`);
      }
    }
  });
}

for (const [path, least, en] of [['/index.html', 50, pages.call.en], ['/check/index.html', 4, pages.call.en], ['/operator/index.html', 15, pages.operator.en]]) {
  test(`the document ${path} has keys that are known, each without a blank`, async () => {
    const page = new DOMParser().parseFromString(await (await fetch(path)).text(), 'text/html');
    let found = 0;
    for (const name of ['say', 'label', 'title', 'hint']) {
      for (const element of page.querySelectorAll(`[data-${name}]`)) {
        const key = element.getAttribute(`data-${name}`);
        ok(typeof en[key] === 'string' && blanks(en[key]).length === 0, `${name}: ${key}`);
        found++;
      }
    }
    ok(found > least, `${found} keys`);
  });
}

test('the first language that is known is chosen, with its region', () => {
  equal(choose(['fr-CA', 'de-AT', 'en']), 'de-AT');
  equal([choose([]), choose(['fr']), choose(['', 'x', 'en--GB', 'toString', 'ar'])], ['en', 'en', 'ar']);
});

test('what is inserted keeps its direction, and a count its plural', () => {
  equal([say('people.count', { count: 1 }), say('people.count', { count: 1200 })], ['1 person', '1,200 people']);
  equal(say('here.one', { name: 'Ada' }), 'Ada is here.');
  equal(say('here.one', { name: 'محمد' }), '\u2068محمد\u2069 is here.');
  equal(say('here.one', { name: '{name} $&' }), '{name} $& is here.', 'a name is no pattern');
  equal([listed(['Ada']), listed(['Ada', 'Alan'])], ['Ada', 'Ada and Alan']);
  equal([lasted(120.4), lasted(3449), lasted(37380)], ['120\u00a0ms', '3.4\u00a0s', '37\u00a0s']);
});
