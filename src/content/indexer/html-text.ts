/**
 * Text of an HTML document as a reader sees it: without tags, comments, scripts and styles, with headings as Markdown
 * and entities as characters. It runs before redaction, so that values split by markup are found. Takes time linear in
 * the length of the document.
 */
export function htmlText(html: string): string {
  const parts: string[] = [];
  const last = html.lastIndexOf('>');
  let at = 0;
  for (let open = html.indexOf('<'); open >= 0 && open < last; open = html.indexOf('<', at)) {
    if (!TAG_BEGINS.test(html.slice(open + 1, open + 3))) {
      parts.push(html.slice(at, open + 1));
      at = open + 1;
      continue;
    }
    parts.push(html.slice(at, open));
    const tag = tagAt(html, open);
    parts.push(tag.replacement);
    at = tag.end;
  }
  parts.push(html.slice(at));
  return collapseSpace(decodeEntities(parts.join('')));
}

const TAG_BEGINS = /^(?:[a-z!?]|\/[a-z])/i;
const NAME = /^\/?[a-z][a-z0-9]*/i;
const UNREAD: ReadonlySet<string> = new Set(['script', 'style', 'template']);
const BLOCKS: ReadonlySet<string> = new Set(
  (
    'address article aside blockquote dd details div dl dt fieldset figcaption figure footer form header hr main nav ' +
    'ol p pre section summary table tbody tfoot thead title tr ul'
  ).split(' '),
);
const CELLS: ReadonlySet<string> = new Set(['td', 'th']);

interface Tag {
  readonly replacement: string;
  readonly end: number;
}

/** The tag or comment that begins at `open`. The caller has checked that a `>` follows. */
function tagAt(html: string, open: number): Tag {
  if (html.startsWith('<!--', open)) return { replacement: '', end: endAfter(html, '-->', open + 4) };
  const end = endAfter(html, '>', open);
  const name = NAME.exec(html.slice(open + 1, Math.min(end, open + 32)))?.[0].toLowerCase() ?? '';
  if (UNREAD.has(name)) return { replacement: '', end: endOfElement(html, name, end) };
  return { replacement: replacementFor(name), end };
}

/** An unclosed tag extends to the end, as in browsers. */
function endAfter(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from);
  return at < 0 ? html.length : at + mark.length;
}

function endOfElement(html: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}`, 'gi');
  closing.lastIndex = from;
  const found = closing.exec(html);
  return found === null ? html.length : endAfter(html, '>', found.index);
}

function replacementFor(name: string): string {
  const plain = name.replace('/', '');
  const heading = /^h([1-6])$/.exec(plain);
  if (heading !== null) return name === plain ? `\n\n${'#'.repeat(Number(heading[1]))} ` : '\n\n';
  if (plain === 'br') return '\n';
  if (plain === 'li') return name === plain ? '\n- ' : '\n';
  if (CELLS.has(plain)) return ' ';
  return BLOCKS.has(plain) ? '\n\n' : '';
}

/** Entity names of U+00A0 to U+00FF, in order. */
const LATIN_1 = (
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro ' +
  'para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil ' +
  'Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave ' +
  'Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml ' +
  'igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute ' +
  'thorn yuml'
).split(' ');
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...LATIN_1.map((name, i): [string, string] => [name, String.fromCharCode(0xa0 + i)]),
  ...Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", euro: '€', trade: '™', bull: '•' }),
  ...Object.entries({ ndash: '–', mdash: '—', hellip: '…', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”' }),
  ...Object.entries({
    OElig: 'Œ',
    oelig: 'œ',
    Scaron: 'Š',
    scaron: 'š',
    Yuml: 'Ÿ',
    zwnj: '\u200c',
    zwj: '\u200d',
  }),
]);

function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z][a-z0-9]{1,7}));/gi,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES.get(name) ?? whole;
      const point = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      const isCharacter = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
      return isCharacter ? String.fromCodePoint(point) : '\ufffd';
    },
  );
}

/** Reduces white space to one blank between words and one empty line between blocks. */
function collapseSpace(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/[ \t\r\f\u00a0]+/g, ' ').trim());
  const kept: string[] = [];
  for (const line of lines) if (line !== '' || kept.at(-1) !== '') kept.push(line);
  return kept.join('\n').trim();
}
