/* The search of the site: ranks sections by how often and where they have the words of a question, and shows the best
   section of each page. Data: SECTIONS, which docs/site_search.py writes. */
"use strict";

{
  const RARE = 1.2, LENGTH = 0.5; // how fast repetitions saturate, and how much long sections lose (BM25)
  const WEIGHTS = { title: 2, pageTitle: 1, page: 0.5, synonym: 0.7, beginning: 0.5 };
  const KINDS = [[/^simmodel/, 0.6], [/^notebooks/, 0.8], [/^CONTRIBUTING/, 0.6]]; // the rest: 1
  const MOST = 30;

  const stemmer = new Stemmer();
  const stems = text =>
    splitQuery(text.toLowerCase())
      .filter(word => !stopwords.has(word))
      .map(word => stemmer.stemWord(word));
  const { pages, sections, words } = SECTIONS;
  const bodies = new Map(Object.entries(words));
  const mean = sections.reduce((sum, section) => sum + section[3], 0) / sections.length;
  const titles = sections.map(section => new Set(stems(section[2])));
  const pageTitles = pages.map(page => new Set(stems(page[1])));
  const all = new Set([...bodies.keys(), ...titles.flatMap(title => [...title])]);
  const groups = SECTIONS.synonyms.map(group => group.map(stems));

  /* How strongly each section is about one word: in its text, in its title, in the title of its page. */
  const about = stem => {
    const found = new Map();
    const add = (at, value) => found.set(at, (found.get(at) || 0) + value);
    const list = bodies.get(stem) || [];
    for (let i = 0; i < list.length; i += 2) {
      const norm = 1 - LENGTH + (LENGTH * sections[list[i]][3]) / mean;
      add(list[i], list[i + 1] / (list[i + 1] + RARE * norm));
    }
    sections.forEach((section, at) => {
      if (titles[at].has(stem)) add(at, WEIGHTS.title * (0.5 + 0.5 / titles[at].size));
      if (pageTitles[section[0]].has(stem)) add(at, WEIGHTS.pageTitle);
    });
    return found;
  };

  /* The same for a term of several words: sections that have them all. */
  const aboutAll = term => {
    const [first, ...rest] = term.map(about);
    return new Map([...first].filter(([at]) => rest.every(each => each.has(at)))
      .map(([at, value]) => [at, rest.reduce((sum, each) => sum + each.get(at), value) / term.length]));
  };

  /* What a question asks for: each word or known term, and with less weight what means the same. */
  const concepts = asked => {
    const found = [];
    const known = groups.flatMap(group => group.map(term => [term, group])).sort((a, b) => b[0].length - a[0].length);
    const claimed = new Set();
    const has = term => asked.findIndex((_, at) => term.every((word, i) => asked[at + i] === word && !claimed.has(at + i)));
    for (const [term, group] of known) {
      const at = has(term);
      if (at < 0) continue;
      term.forEach((_, i) => claimed.add(at + i));
      found.push([[term, 1], ...group.filter(other => other !== term).map(other => [other, WEIGHTS.synonym])]);
    }
    asked.forEach((word, at) => {
      if (claimed.has(at)) return;
      const longer = all.has(word) ? [] : [...all].filter(each => each.startsWith(word)).slice(0, 20);
      found.push([[[word], 1], ...longer.map(each => [[each], WEIGHTS.beginning])]);
    });
    return found;
  };

  const ranked = question => {
    const asked = [...new Set(stems(question))];
    const scores = new Map();
    const covered = new Map();
    const wanted = concepts(asked);
    wanted.forEach((concept, number) => {
      const best = new Map();
      for (const [term, weight] of concept)
        for (const [at, value] of aboutAll(term)) best.set(at, Math.max(best.get(at) || 0, weight * value));
      const rarity = Math.log(1 + (sections.length - best.size + 0.5) / (best.size + 0.5));
      const ofPage = new Map();
      for (const [at, value] of best) ofPage.set(sections[at][0], Math.max(ofPage.get(sections[at][0]) || 0, value));
      sections.forEach(([page], at) => {
        if (!ofPage.has(page)) return;
        scores.set(at, (scores.get(at) || 0) + rarity * ((best.get(at) || 0) + WEIGHTS.page * ofPage.get(page)));
        covered.set(at, (covered.get(at) || 0) + 1);
      });
    });
    const bestOf = new Map();
    for (const [at, score] of scores) {
      const [page, anchor, title] = sections[at];
      const kind = KINDS.find(([pattern]) => pattern.test(pages[page][0]));
      const value = score * (kind ? kind[1] : 1) * (covered.get(at) / wanted.length);
      if (value > (bestOf.get(page) || [0, 0])[1]) bestOf.set(page, [at, value]);
    }
    return [...bestOf].map(([page, [at, value]]) => [page, at, value]).sort((a, b) => b[2] - a[2]).slice(0, MOST);
  };

  /* In the place of Sphinx's own: the results as it shows them, the best one last. */
  Search._performSearch = question => {
    document.getElementById("search-progress")?.replaceChildren();
    return ranked(question).reverse().map(([page, at, score]) => {
      const [docname, pageTitle] = pages[page], [, anchor, title] = sections[at];
      const entry = docname.startsWith("simmodel") && title !== pageTitle;
      const shown = title === pageTitle || entry ? title : `${pageTitle} > ${title}`;
      const hash = title === pageTitle ? "" : "#" + anchor;
      return [docname, shown, hash, entry ? "in " + pageTitle : null, score, docname, entry ? "object" : "title"];
    });
  };
}
