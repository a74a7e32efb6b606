/** Links of the documentation: whether they lead somewhere, and where on the site. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { type Outline, outlineOf } from './markdown.js';

/** A link that leads nowhere. */
export interface Broken {
  /** `docs/bi.md:12` */
  readonly at: string;
  readonly href: string;
  readonly why: string;
}

/** A link out of the repository: nothing here follows it. */
export function isOutside(href: string): boolean {
  return /^[a-z][a-z+.-]*:|^\/\//i.test(href);
}

/** The file or folder of the repository that a link of `from` names, without its anchor; null where it leaves it. */
export function targetOf(from: string, href: string): string | null {
  const path = decodeURIComponent(href.split('#')[0] ?? '');
  if (path === '') return from;
  const target = posix.normalize(posix.join(posix.dirname(from), path));
  return target.startsWith('..') || path.startsWith('/') ? null : target.replace(/\/$/, '');
}

/** Every link of `files`, Markdown files of the repository by their paths in it, that leads nowhere. */
export function brokenLinks(root: string, files: readonly string[]): readonly Broken[] {
  const outlines = new Map<string, Outline>();
  const outline = (file: string): Outline => {
    const made = outlines.get(file) ?? outlineOf(readFileSync(join(root, file), 'utf8'));
    outlines.set(file, made);
    return made;
  };
  return files.flatMap((file) =>
    outline(file).links.flatMap(({ href, line }) => {
      const why = faultOf(root, file, href, outline);
      return why === null ? [] : [{ at: `${file}:${line}`, href, why }];
    }),
  );
}

function faultOf(
  root: string,
  file: string,
  href: string,
  outline: (file: string) => Outline,
): string | null {
  if (isOutside(href)) return null;
  const target = targetOf(file, href);
  if (target === null) return 'it leaves the repository, or begins with a slash';
  if (!existsSync(join(root, target))) return `there is no ${target}`;
  const anchor = href.split('#')[1];
  if (anchor === undefined) return null;
  const page = statSync(join(root, target)).isDirectory() ? `${target}/README.md` : target;
  if (!page.endsWith('.md')) return 'an anchor of what is not a page';
  return outline(page).anchors.has(decodeURIComponent(anchor)) ? null : `${page} has no heading #${anchor}`;
}

/** Files and folders outside `docs/` that pages lead to, and that those lead to which are pages themselves. */
export function reachedOutside(root: string, pages: readonly string[]): readonly string[] {
  const reached = new Set<string>();
  const next = [...pages];
  for (let file = next.pop(); file !== undefined; file = next.pop()) {
    if (!file.endsWith('.md')) continue;
    for (const { href } of outlineOf(readFileSync(join(root, file), 'utf8')).links) {
      const target = isOutside(href) ? null : targetOf(file, href);
      if (target === null || target.startsWith('docs/') || target === 'docs' || reached.has(target)) continue;
      if (!existsSync(join(root, target))) continue;
      reached.add(target);
      next.push(target);
    }
  }
  return [...reached].toSorted();
}

/** Every Markdown file of a folder, below `root`. */
export function markdownIn(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return markdownIn(root, path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}
