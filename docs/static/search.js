/* The search of the site: ranks sections by how often and where they have the words of a question, and shows the best
   section of each page. Data: SECTIONS, which docs/site_search.py writes. */
"use strict";

{
  const REPEATED = 1.2, LENGTH = 0.5; // how fast repetitions saturate, and how much long sections lose (BM25)
  const WEIGHTS = { title: 2, pageTitle: 1, page: 0.5, synonym: 0.8, beginning: 0.5, apart: 0.3 };
  const KINDS = [[/^simmodel/, 0.6], [/^notebooks/, 0.8], [/^CONTRIBUTING|architecture$/, 0.6]]; // for insiders; the rest: 1
  const MOST = 30;

  const stemmer = new Stemmer();
  const stems = text =>
    splitQuery(text.toLowerCase())
      .filter(word => !stopwords.has(word))
      .map(word => stemmer.stemWord(word));
  const { pages, sections, words } = SECTIONS;
  const bodies = new Map(Object.entries(words));
  const mean = sections.reduce((sum, section) => sum + section[3], 0) / sections.length;
  const titles = sections.map(section => stems(section[2]));
  const inTitles = titles.map(title => ` ${title.join(" ")} `);
  const inPageTitles = pages.map(page => ` ${stems(page[1]).join(" ")} `);
  const known = new Set([...bodies.keys(), ...titles.flat()]);
  const groups = SECTIONS.synonyms.map(group => group.map(term => stems(term).join(" ")).filter(term => term));

  /* How strongly each section is about a word or a phrase: in its text, in its title, in the title of its page. */
  const about = term => {
    const found = new Map();
    const add = (at, value) => found.set(at, (found.get(at) || 0) + value);
    const list = bodies.get(term) || [];
    for (let i = 0; i < list.length; i += 2) {
      const norm = 1 - LENGTH + (LENGTH * sections[list[i]][3]) / mean;
      add(list[i], list[i + 1] / (list[i + 1] + REPEATED * norm));
    }
    const size = term.split(" ").length;
    sections.forEach(([page], at) => {
      if (inTitles[at].includes(` ${term} `)) add(at, WEIGHTS.title * (0.5 + (0.5 * size) / titles[at].length));
      if (inPageTitles[page].includes(` ${term} `)) add(at, WEIGHTS.pageTitle);
    });
    return found;
  };

  /* The same for a phrase whose words stand apart: sections that have them all. */
  const apart = term => {
    const [first, ...rest] = term.split(" ").map(about);
    return new Map([...first].filter(([at]) => rest.every(each => each.has(at)))
      .map(([at, value]) => [at, Math.min(value, ...rest.map(each => each.get(at)))]));
  };

  /* What a question asks for: of each word, and of all terms that mean the same, what they find, and of how many words. */
  const concepts = question => {
    let left = ` ${[...new Set(stems(question))].join(" ")} `;
    const found = [];
    for (const group of groups) {
      const named = group.filter(term => left.includes(` ${term} `)).sort((a, b) => b.length - a.length);
      if (!named.length) continue;
      for (const term of named) left = left.replace(` ${term} `, " ; ");
      const finds = group.map(term => [about(term), named.includes(term) ? 1 : WEIGHTS.synonym]);
      finds.push(...named.filter(term => term.includes(" ")).map(term => [apart(term), WEIGHTS.apart]));
      found.push({ finds, size: named[0].split(" ").length });
    }
    for (const word of left.split(" ").filter(each => each && each !== ";")) {
      const longer = known.has(word) ? [] : [...known].filter(each => each.startsWith(word)).slice(0, 20);
      found.push({ finds: [[about(word), 1], ...longer.map(each => [about(each), WEIGHTS.beginning])], size: 1 });
    }
    return found;
  };

  /* The best section of each page: [page, section, score]. */
  const ranked = question => {
    const scores = new Map(), covered = new Map(), bestOf = new Map();
    const wanted = concepts(question);
    const all = wanted.reduce((sum, each) => sum + each.size, 0);
    for (const { finds, size } of wanted) {
      const best = new Map(), ofPage = new Map();
      for (const [found, weight] of finds)
        for (const [at, value] of found) best.set(at, Math.max(best.get(at) || 0, weight * value));
      for (const [at, value] of best) ofPage.set(sections[at][0], Math.max(ofPage.get(sections[at][0]) || 0, value));
      const rarity = size * Math.log(1 + (sections.length - best.size + 0.5) / (best.size + 0.5));
      sections.forEach(([page], at) => {
        if (!ofPage.has(page)) return;
        scores.set(at, (scores.get(at) || 0) + rarity * ((best.get(at) || 0) + WEIGHTS.page * ofPage.get(page)));
        covered.set(at, (covered.get(at) || 0) + size);
      });
    }
    for (const [at, score] of scores) {
      const page = sections[at][0];
      const kind = KINDS.find(([pattern]) => pattern.test(pages[page][0]));
      const value = score * (kind ? kind[1] : 1) * (covered.get(at) / all);
      if (value > (bestOf.get(page)?.[2] || 0)) bestOf.set(page, [page, at, value]);
    }
    return [...bestOf.values()].sort((a, b) => b[2] - a[2]).slice(0, MOST);
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
