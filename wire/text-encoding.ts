import { createRequire } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { error } from './errors.js';

/** A client encoding other than UTF-8. */
export interface TextEncoding {
  /** The Postgres name, such as `LATIN1`. */
  readonly name: string;
  /**
   * Converts to a string. @throws WireError 22021 for an invalid byte sequence, 22P05 for a byte without a character
   */
  decode(bytes: Buffer): Promise<string>;
  /** Converts from UTF-8. @throws WireError 22P05 for a character without an equivalent */
  encode(utf8: Buffer): Promise<Buffer>;
  /** Replaces characters that have no equivalent with `?`; for names and messages. */
  encodeLossy(text: string): Buffer;
}

interface Iconv {
  encode(text: string, encoding: string): Buffer;
  decode(bytes: Buffer, encoding: string): string;
  getDecoder(encoding: string): { write(bytes: Buffer): string; end(): string | undefined };
}

/** The number of bytes converted per turn of the event loop, which takes a few milliseconds. */
const SLICE = 131_072;

/** Names in iconv-lite, by Postgres name. All these encodings are supersets of ASCII. */
const LIBRARY_NAMES: ReadonlyMap<string, string> = new Map([
  ['LATIN1', 'iso88591'],
  ['LATIN2', 'iso88592'],
  ['LATIN3', 'iso88593'],
  ['LATIN4', 'iso88594'],
  ['LATIN5', 'iso88599'],
  ['LATIN6', 'iso885910'],
  ['LATIN7', 'iso885913'],
  ['LATIN8', 'iso885914'],
  ['LATIN9', 'iso885915'],
  ['LATIN10', 'iso885916'],
  ['ISO_8859_5', 'iso88595'],
  ['ISO_8859_6', 'iso88596'],
  ['ISO_8859_7', 'iso88597'],
  ['ISO_8859_8', 'iso88598'],
  ...[1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map((n) => [`WIN${n}`, `win${n}`] as const),
  ['WIN866', 'cp866'],
  ['WIN874', 'win874'],
  ['KOI8R', 'koi8r'],
  ['KOI8U', 'koi8u'],
  ['EUC_JP', 'eucjp'],
  ['SJIS', 'shiftjis'],
  ['EUC_CN', 'gb2312'],
  ['GBK', 'gbk'],
  ['GB18030', 'gb18030'],
  ['BIG5', 'big5'],
  ['EUC_KR', 'euckr'],
  ['UHC', 'cp949'],
]);

/** Multibyte encodings, in which byte sequences can be invalid. */
const MULTIBYTE: ReadonlySet<string> = new Set([
  'EUC_JP',
  'SJIS',
  'EUC_CN',
  'GBK',
  'GB18030',
  'BIG5',
  'EUC_KR',
  'UHC',
]);

/** Alternative names accepted by Postgres. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['UNICODE', 'UTF8'],
  // SQL_ASCII means no conversion, as for UTF-8.
  ['SQLASCII', 'UTF8'],
  ['ISO88591', 'LATIN1'],
  ['ISO88592', 'LATIN2'],
  ['ISO88593', 'LATIN3'],
  ['ISO88594', 'LATIN4'],
  ['ISO88599', 'LATIN5'],
  ['ISO885910', 'LATIN6'],
  ['ISO885913', 'LATIN7'],
  ['ISO885914', 'LATIN8'],
  ['ISO885915', 'LATIN9'],
  ['ISO885916', 'LATIN10'],
  ['KOI8', 'KOI8R'],
  ['WIN', 'WIN1251'],
  ['ALT', 'WIN866'],
  ['SHIFTJIS', 'SJIS'],
  ['MSKANJI', 'SJIS'],
  ['WIN932', 'SJIS'],
  ['WINDOWS932', 'SJIS'],
  ['WIN936', 'GBK'],
  ['WINDOWS936', 'GBK'],
  ['WIN949', 'UHC'],
  ['WINDOWS949', 'UHC'],
  ['WIN950', 'BIG5'],
  ['WINDOWS950', 'BIG5'],
  ...[866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map(
    (n) => [`WINDOWS${n}`, `WIN${n}`] as const,
  ),
]);

const BY_NORMALIZED_NAME: ReadonlyMap<string, string> = new Map(
  ['UTF8', ...LIBRARY_NAMES.keys()].map((name) => [normalizeName(name), name]),
);

/** Returns the Postgres name of a client encoding; null if it is unknown or not supported. */
export function encodingName(name: string): string | null {
  const normalized = normalizeName(name);
  return BY_NORMALIZED_NAME.get(normalized) ?? ALIASES.get(normalized) ?? null;
}

/** Returns the encoding with this Postgres name; null for UTF8, which needs no conversion. */
export function textEncoding(name: string): TextEncoding | null {
  const libraryName = LIBRARY_NAMES.get(name);
  return libraryName === undefined ? null : createEncoding(name, libraryName, iconv());
}

function createEncoding(
  name: string,
  libraryName: string,
  { encode, decode, getDecoder }: Iconv,
): TextEncoding {
  const encodeLossy = (text: string): Buffer => encode(text, libraryName);
  return Object.freeze({
    name,
    decode: async (bytes: Buffer): Promise<string> => {
      const decoder = getDecoder(libraryName);
      let text = '';
      for (let at = 0; at < bytes.length; at += SLICE) {
        if (at > 0) await nextTurn();
        text += decoder.write(bytes.subarray(at, at + SLICE));
      }
      text += decoder.end() ?? '';
      if (text.includes('\uFFFD')) throw invalidBytes(bytes, text, name);
      return text;
    },
    encode: async (utf8: Buffer): Promise<Buffer> => {
      const slices: Buffer[] = [];
      for (let at = 0, end = 0; at < utf8.length; at = end) {
        if (at > 0) await nextTurn();
        end = sliceEnd(utf8, at);
        const slice = utf8.toString('utf8', at, end);
        const bytes = encodeLossy(slice);
        const roundTripped = decode(bytes, libraryName);
        if (roundTripped !== slice) throw noEquivalent(slice, roundTripped, name);
        slices.push(bytes);
      }
      const [onlySlice] = slices;
      return slices.length === 1 && onlySlice !== undefined ? onlySlice : Buffer.concat(slices);
    },
    encodeLossy,
  });
}

function sliceEnd(utf8: Buffer, start: number): number {
  let end = Math.min(start + SLICE, utf8.length);
  while (end < utf8.length && ((utf8[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}

function invalidBytes(bytes: Buffer, text: string, name: string): Error {
  if (MULTIBYTE.has(name)) return error('22021', `invalid byte sequence for encoding "${name}"`);
  const byte = bytes[text.indexOf('\uFFFD')] ?? 0;
  return error(
    '22P05',
    `character with byte sequence 0x${byte.toString(16)} in encoding "${name}" has no equivalent in encoding "UTF8"`,
  );
}

/**
 * Creates the error for the first character without an equivalent, worded as in Postgres. `roundTripped` is
 * `text` after conversion to the encoding and back.
 */
function noEquivalent(text: string, roundTripped: string, name: string): Error {
  let at = 0;
  while (text[at] === roundTripped[at]) at++;
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  const bytes = [...Buffer.from(character)].map((b) => `0x${b.toString(16).padStart(2, '0')}`);
  return error(
    '22P05',
    `character with byte sequence ${bytes.join(' ')} in encoding "UTF8" has no equivalent in encoding "${name}"`,
  );
}

/** Loads iconv-lite on demand, because nearly all clients use UTF-8. */
function iconv(): Iconv {
  return createRequire(import.meta.url)('iconv-lite') as Iconv;
}

function normalizeName(name: string): string {
  return name.toUpperCase().replace(/[^A-Z0-9]/g, '');
}
