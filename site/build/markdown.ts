/** Parts of a Markdown text that the site and the check of links read. */

export interface Link {
  readonly href: string;
  readonly line: number;
  readonly image: boolean;
}

export interface Outline {
  /** Anchors of the page, as GitHub makes them of headings. */
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly Link[];
}

const FENCE = /^\s*(```+|~~~+)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const LINK = /(!?)\[(?:[^[\]]|\[[^\]]*\])*\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/g;
const DEFINED = /^\s{0,3}\[[^\]]+\]:\s+(\S+)/;

/** Headings and links of a page; what stands in code is neither. */
export function outlineOf(text: string): Outline {
  const slug = slugger();
  const anchors = new Set<string>();
  const links: Link[] = [];
  let fence: string | null = null;
  for (const [i, line] of text.split('\n').entries()) {
    const mark = FENCE.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) === true) fence = null;
      continue;
    }
    if (mark !== undefined) {
      fence = mark;
      continue;
    }
    const heading = HEADING.exec(line)?.[2];
    if (heading !== undefined) anchors.add(slug(plainText(heading)));
    for (const [, named = ''] of line.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(named);
    links.push(...linksIn(line, i + 1));
  }
  return { anchors, links };
}

function linksIn(line: string, number: number): readonly Link[] {
  const prose = line.replace(/(`+)(?!`)(.*?)(?<!`)\1(?!`)/g, (code) => '·'.repeat(code.length));
  const inline = [...prose.matchAll(LINK)].map(([, bang, href = '']) => ({ href, image: bang === '!' }));
  const defined = DEFINED.exec(prose)?.[1];
  const more = defined === undefined ? [] : [{ href: defined, image: false }];
  return [...inline, ...more].map((link) => ({ ...link, line: number }));
}

/** Markdown's marks of emphasis, code and links taken away. */
export function plainText(markdown: string): string {
  return markdown
    .replace(/!?\[((?:[^[\]]|\[[^\]]*\])*)\]\([^)]*\)/g, '$1')
    .replace(/(\*\*|__)(.+?)\1/g, '$2')
    .replace(/(?<![\w\\])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_](?!\w)/g, '$1')
    .replace(/`+([^`]+)`+/g, '$1')
    .replace(/<\/?[a-z][^>]*>/g, '')
    .replace(/\\([\\`*_{}[\]()#+.!|-])/g, '$1');
}

/** The anchor of a heading, as GitHub writes it, of its text without marks. Equal ones of a page are not told apart here. */
export function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replace(/ /g, '-');
}

/** Anchors of one page: the second of a name is numbered. */
export function slugger(): (heading: string) => string {
  const taken = new Map<string, number>();
  return (heading) => {
    const slug = slugOf(heading);
    const before = taken.get(slug) ?? 0;
    taken.set(slug, before + 1);
    return before === 0 ? slug : `${slug}-${before}`;
  };
}
