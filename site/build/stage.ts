/** Writes the sources of the site: the pages of `docs/`, and pages and pictures generated from the repository. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { picturesOf } from './benchmarks.js';
import { resultsOf } from './figures.js';
import { isOutside, markdownIn, reachedOutside, targetOf } from './links.js';
import { allPages, type Page, pagesIn, type Section, sectionsOf } from './pages.js';
import { spine } from './spine.js';

/** Folder of the site for files that are not below `docs/`. */
const REPOSITORY = 'repository';

/** Path on the site of a file or folder of the repository: a page (ending in `.md`) or a picture. */
export function sitePath(target: string, isFolder: boolean): string {
  const inDocs = target === 'docs' || target.startsWith('docs/');
  const path = inDocs ? target.slice('docs/'.length) : `${REPOSITORY}/${target}`;
  if (isFolder) return posix.join(path, 'index.md');
  if (!path.endsWith('.md')) return inDocs ? path : `${path}.md`;
  return inDocs && posix.basename(path) === 'README.md' ? posix.join(posix.dirname(path), 'index.md') : path;
}

/** Source file of a page of the site. */
export function sourceOf(page: string): string {
  if (page.startsWith(`${REPOSITORY}/`)) return page.slice(REPOSITORY.length + 1);
  return posix.join('docs', page.replace(/(^|\/)index\.md$/, '$1README.md'));
}

/** Rewrites a link of a Markdown page for the site, where pages have other paths than their source files. */
export function siteLink(root: string, page: string, href: string): string {
  if (isOutside(href) || href.startsWith('#')) return href;
  const target = targetOf(sourceOf(page), href);
  if (target === null) return href;
  const to = sitePath(
    target,
    statSync(join(root, target), { throwIfNoEntry: false })?.isDirectory() ?? false,
  );
  const path = posix.relative(posix.dirname(page), to).replace(/(^|\/)index\.md$/, '$1');
  const anchor = href.split('#')[1];
  const relative = path.startsWith('.') ? path : `./${path}`;
  return anchor === undefined ? relative : `${relative}#${anchor}`;
}

/**
 * Writes the sources of the site into `out`, which is emptied first.
 *
 * @param root the repository
 */
export function stage(root: string, out: string): void {
  const docs = join(root, 'docs');
  rmSync(out, { recursive: true, force: true });
  for (const file of filesIn(docs))
    copyTo(join(out, sitePath(posix.join('docs', file), false)), join(docs, file));
  writeTo(join(out, PLAYGROUND), playgroundPage(readFileSync(join(docs, PLAYGROUND), 'utf8')));
  for (const [path, svg] of picturesOf(resultsOf(readFileSync(join(root, 'bench', 'RESULTS.md'), 'utf8'))))
    writeTo(join(out, path), svg);
  writeTo(join(out, 'pictures', 'spine.svg'), spine());
  for (const target of reachedOutside(root, markdownIn(root, 'docs'))) {
    const isFolder = statSync(join(root, target)).isDirectory();
    writeTo(join(out, sitePath(target, isFolder)), outsidePage(root, target, isFolder));
  }
  const pages = allPages(docs);
  for (const { path } of pages) copyTo(join(out, 'public', path), join(docs, path));
  writeTo(join(out, 'public', 'llms.txt'), llms(docs));
  writeTo(join(out, 'public', 'llms-full.txt'), llmsFull(docs, pages));
}

/** Page with the playground, which takes the whole width of the site. */
const PLAYGROUND = 'playground.md';

/** Puts the playground where the page has a picture of it. @throws if it has no place for it */
function playgroundPage(text: string): string {
  const place = /<!-- playground -->[\s\S]*<!-- end of playground -->/;
  if (!place.test(text)) throw new Error(`docs/${PLAYGROUND} has no place for the playground`);
  const head = '---\nlayout: page\nsidebar: false\n---\n\n<div class="vp-doc pg-page">\n\n';
  return `${head}${text.replace(place, '<Playground />')}\n</div>\n`;
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  );
}

function copyTo(to: string, from: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
}

function writeTo(to: string, text: string): void {
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
}

/** A page for a file outside `docs/`: Markdown unchanged, other files as listings, folders as lists of names. */
function outsidePage(root: string, target: string, isFolder: boolean): string {
  const head = '---\nsearch: false\nprev: false\nnext: false\n---\n\n';
  if (isFolder) {
    const names = readdirSync(join(root, target)).toSorted();
    return `${head}# \`${target}/\`\n\nA folder of the repository.\n\n${names.map((name) => `- \`${name}\``).join('\n')}\n`;
  }
  const text = readFileSync(join(root, target), 'utf8');
  if (target.endsWith('.md')) return `${head}${text}`;
  return `${head}# \`${target}\`\n\nA file of the repository.\n\n\`\`\`\`\`txt\n${text}\n\`\`\`\`\`\n`;
}

const ABOUT =
  'OSL Gateway is a governed semantic layer over Postgres: one compiler, one policy enforcement point and one ' +
  'hash-chained audit log behind the Postgres wire protocol, REST, MCP and a command line.';

function listed({ path, title, line }: Page): string {
  return `- [${title}](${path}): ${line}`;
}

/** Table of contents for language models: https://llmstxt.org */
function llms(docs: string): string {
  const section = ({ title, pages }: Section): string => `## ${title}\n\n${pages.map(listed).join('\n')}`;
  const further: readonly Section[] = [
    { title: 'Policies by example', pages: pagesIn(docs, 'cookbook') },
    { title: 'Decisions', pages: pagesIn(docs, 'decisions') },
  ];
  const sections = [...sectionsOf(docs), ...further].map(section);
  return `# OSL Gateway\n\n> ${ABOUT}\n\n${sections.join('\n\n')}\n`;
}

/** Text of all pages, concatenated. */
function llmsFull(docs: string, pages: readonly Page[]): string {
  const texts = pages.map(
    ({ path }) => `<!-- ${path} -->\n\n${readFileSync(join(docs, path), 'utf8').trim()}\n`,
  );
  return `# OSL Gateway\n\n> ${ABOUT}\n\n${texts.join('\n\n')}`;
}

/** Icon of the browser's tab, as SVG. */
export const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1a66d1"/>' +
  '<path d="M8 10h16M8 16h10M8 22h6" stroke="#fff" stroke-width="3" stroke-linecap="round"/>' +
  '<circle cx="23" cy="20" r="4" fill="none" stroke="#fff" stroke-width="2.5"/></svg>';
