/** The pages of the documentation, in the order in which the site and `llms.txt` list them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainText } from './markdown.js';

export interface Page {
  /** Below `docs/`, with its ending: `decisions/0001-blocks-not-algebra.md`. */
  readonly path: string;
  readonly title: string;
  /** Its first sentence. */
  readonly line: string;
}

export interface Section {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** The page that everything begins with. */
export const START = 'README.md';

/** Tasks of a reader, with the pages for each. A page that is in none of these is listed under `MORE`. */
const SECTIONS: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['Begin', ['getting-started', 'playground', 'cookbook/README', 'console', 'compared', 'benchmarks']],
  ['Connect a tool or a program', ['bi', 'rest', 'mcp', 'cli-output', 'editors']],
  ['Query', ['osl-sql', 'functions', 'metrics', 'retrieval', 'operators', 'raw-sql', 'errors']],
  ['Describe and publish data', ['manifest', 'publishing', 'content', 'interchange', 'caching', 'lineage']],
  ['Write and test a policy', ['policy', 'policy-tests', 'access', 'policy-proofs', 'identity']],
  ['Move from row security', ['from-row-security', 'rls-check', 'row-security']],
  ['Operate', ['operations', 'configuration', 'audit', 'receipts', 'upgrading']],
  ['Scale out', ['scale', 'scale-out']],
  ['Trust', ['threat-model', 'trusted-base', 'formal/README', 'leakbench', 'conformance']],
  ['Develop', ['architecture', 'testing', 'dependencies', 'decisions/README', 'versioning', 'releasing']],
];
const MORE = 'More';
/** Folders whose pages are listed on a page of their own. */
const FOLDERS = ['cookbook', 'decisions', 'formal'] as const;

/** Every section with the pages that are there, in order. */
export function sectionsOf(docs: string): readonly Section[] {
  const all = new Set(namesIn(docs));
  const listed = SECTIONS.map(([title, names]) => ({ title, names: names.filter((n) => all.delete(n)) }));
  all.delete(START.replace(/\.md$/, ''));
  const more = { title: MORE, names: [...all].toSorted() };
  return [...listed, more]
    .filter(({ names }) => names.length > 0)
    .map(({ title, names }) => ({ title, pages: names.map((name) => readPage(docs, `${name}.md`)) }));
}

/** The pages of one of the folders, without the one that lists them. */
export function pagesIn(docs: string, folder: (typeof FOLDERS)[number]): readonly Page[] {
  return readdirSync(join(docs, folder))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .toSorted()
    .map((name) => readPage(docs, `${folder}/${name}`));
}

/** All pages: the first one, those of the sections, those of the folders. */
export function allPages(docs: string): readonly Page[] {
  return [
    readPage(docs, START),
    ...sectionsOf(docs).flatMap(({ pages }) => pages),
    ...FOLDERS.flatMap((folder) => pagesIn(docs, folder)),
  ];
}

/** Names of the pages that a section may have: those of `docs/` itself, and the first of each folder. */
function namesIn(docs: string): readonly string[] {
  const own = readdirSync(docs).filter((name) => name.endsWith('.md'));
  return [...own.map((name) => name.replace(/\.md$/, '')), ...FOLDERS.map((folder) => `${folder}/README`)];
}

function readPage(docs: string, path: string): Page {
  const text = readFileSync(join(docs, path), 'utf8');
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`docs/${path} has no title`);
  return { path, title: plainText(title), line: firstSentence(text) };
}

/** Of the first paragraph that is prose. */
function firstSentence(text: string): string {
  const paragraphs = text.split(/\n\s*\n/).map((part) => part.trim());
  const prose =
    paragraphs.find(
      (part) => /^[\w`*"[]/.test(part) && !part.startsWith('```') && !part.startsWith('**Status'),
    ) ?? text;
  const plain = plainText(prose ?? '').replace(/\s+/g, ' ');
  return /^.*?[.:!?](?= [A-Z]|$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain;
}
