import { LRUCache } from 'lru-cache';
import { oneStatement, type ParsedText, parseText, QueryError, shapeOf, typeNamed } from 'osl-compiler';
import { isShort } from '../../ask/parsing/index.js';
import { isTree, namesOf, referencesOf, type Tree } from './syntax.js';
import { SYSTEM_RELATIONS } from './system-relations.js';

/**
 * Who answers a statement: the caller's catalog, or the compiler and the data behind it. Both never mix, and a
 * catalog statement writes nothing.
 */
export type StatementLane =
  | { readonly kind: 'catalog' }
  | { readonly kind: 'data' }
  | { readonly kind: 'mixed' }
  | { readonly kind: 'writes'; readonly command: string };

const CATALOG: StatementLane = Object.freeze({ kind: 'catalog' });
const DATA: StatementLane = Object.freeze({ kind: 'data' });
const MIXED: StatementLane = Object.freeze({ kind: 'mixed' });

/** Judges one statement by its syntax tree. What cannot be parsed, or is too deep to walk, is the compiler's to refuse. */
export function classify(text: string): StatementLane {
  return judge(() => parseText(text)) ?? DATA;
}

/** Null where there is no tree, or one too deep to walk. */
function judge(parse: () => ParsedText): StatementLane | null {
  try {
    return laneOf(oneStatement(parse()).node as unknown as Tree); // the tree is plain data
  } catch (error) {
    if (error instanceof QueryError || error instanceof RangeError) return null;
    throw error;
  }
}

function laneOf(node: Tree): StatementLane {
  const select = node['SelectStmt'] ?? explainedQuery(node);
  if (!isTree(select)) return DATA;
  const { system, data, writes } = referencesOf({ SelectStmt: select }, (name) => SYSTEM_RELATIONS.has(name));
  if (data) return system ? MIXED : DATA;
  if (!system && select === node['SelectStmt'] && isPlain(select)) return DATA;
  return writes === null ? CATALOG : Object.freeze({ kind: 'writes', command: writes });
}

/** The SELECT that an EXPLAIN is of; its plan names nothing that is not in the caller's catalog. */
function explainedQuery(node: Tree): unknown {
  const explain = node['ExplainStmt'];
  const query = isTree(explain) ? explain['query'] : null;
  return isTree(query) ? query['SelectStmt'] : null;
}

const PLAIN_PARTS: ReadonlySet<string> = new Set(['targetList', 'limitOption', 'op']);

/** `SELECT 1`: only constants, with or without a cast to a type of the model. The data lane does that faster. */
function isPlain(select: Tree): boolean {
  const targets = select['targetList'];
  return (
    Object.keys(select).every((part) => PLAIN_PARTS.has(part)) &&
    Array.isArray(targets) &&
    targets.every((t) => isTree(t) && isTree(t['ResTarget']) && isConstant(t['ResTarget']['val']))
  );
}

function isConstant(value: unknown): boolean {
  if (!isTree(value)) return false;
  const constant = value['A_Const'];
  if (isTree(constant)) return ['ival', 'sval', 'boolval', 'fval'].some((kind) => kind in constant);
  const cast = value['TypeCast'];
  if (!isTree(cast) || !isTree(cast['typeName'])) return false;
  const { names, typmods, arrayBounds } = cast['typeName'];
  const [name = '', rest] = namesOf(names).filter((n) => n !== 'pg_catalog');
  const plainType = rest === undefined && typmods === undefined && arrayBounds === undefined;
  const arg = cast['arg'];
  return plainType && typeNamed(name) !== null && (isConstant(arg) || (isTree(arg) && 'ParamRef' in arg));
}

const CACHED = 2_000;
/** UTF-16 units; longer texts are judged anew each time. */
const CACHED_LENGTH = 16_384;

/**
 * Remembers the lanes of what comes again and again: by its shape, so that texts which differ in literals alone are
 * parsed once.
 *
 * INVARIANT: a lane that is shared was read from a tree, and none of what `laneOf` looks at is the value of a literal:
 * it asks for names, which no literal is, and whether a constant is one.
 */
export class Classifier {
  readonly #lanes = new LRUCache<string, StatementLane>({ max: CACHED });

  /** `parse` parses a text that is too long to be parsed here. */
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane> {
    if (!MAY_BE_CATALOG.test(text)) return DATA;
    const shape = JUDGES_LITERALS.test(text) ? null : (shapeOf(text)?.shape ?? null);
    const known =
      (shape === null ? undefined : this.#lanes.get(shapeKey(shape))) ?? this.#lanes.get(textKey(text));
    if (known !== undefined) return known;
    if (isShort(text))
      return this.#remember(
        text,
        shape,
        judge(() => parseText(text)),
      );
    return this.#longLane(text, shape, parse);
  }

  async #longLane(
    text: string,
    shape: string | null,
    parse: (text: string) => Promise<ParsedText>,
  ): Promise<StatementLane> {
    try {
      const parsed = await parse(text);
      return this.#remember(
        text,
        shape,
        judge(() => parsed),
      );
    } catch (error) {
      if (error instanceof QueryError) return DATA; // the spine meets the same fault, and records it
      throw error;
    }
  }

  /** Of what could not be judged, this very text is known to be nobody's but the compiler's, and no other. */
  #remember(text: string, shape: string | null, judged: StatementLane | null): StatementLane {
    const lane = judged ?? DATA;
    if (text.length > CACHED_LENGTH) return lane;
    this.#lanes.set(shape === null || judged === null ? textKey(text) : shapeKey(shape), lane);
    return lane;
  }
}

// A text that has no shape can be, character for character, the shape of another; they are never the same key.
function textKey(text: string): string {
  return `t ${text}`;
}

function shapeKey(shape: string): string {
  return `s ${shape}`;
}

/** `float(n)`: the one form whose grammar judges the value of a literal, so that one text parses and its like does not. */
const JUDGES_LITERALS = /\bfloat\b/i;

/**
 * Spares questions about data a second look at their syntax tree: they have a FROM outside of strings, name nothing of
 * the system, escape no identifier, and call nothing in FROM. What slips through is refused by the compiler.
 */
const MAY_BE_CATALOG =
  /^\s*with\b|pg_|information_schema|u&"|\bfrom\s*\(|(?:\bfrom|\bjoin|,|\blateral)\s+[\w."]+\s*\(|'[^']*\bfrom\b|^(?!.*\bfrom\b)/is;
