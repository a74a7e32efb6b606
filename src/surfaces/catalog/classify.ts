import { oneStatement, type ParsedText, parseText, QueryError, typeNamed } from 'osl-compiler';
import { isShort } from '../../ask/parsing/index.js';
import { isTree, namesOf, referencesOf, type Tree } from './syntax.js';
import { SYSTEM_RELATIONS } from './system-relations.js';

/**
 * Who answers a statement: the caller's catalog, or the compiler and the data behind it. Both never mix, and a
 * catalog statement writes nothing.
 */
export type Lane =
  | { readonly kind: 'catalog' }
  | { readonly kind: 'data' }
  | { readonly kind: 'mixed' }
  | { readonly kind: 'writes'; readonly command: string };

const CATALOG: Lane = Object.freeze({ kind: 'catalog' });
const DATA: Lane = Object.freeze({ kind: 'data' });
const MIXED: Lane = Object.freeze({ kind: 'mixed' });

/** Judges one statement by its syntax tree. What cannot be parsed, or is too deep to walk, is the compiler's to refuse. */
export function classify(text: string): Lane {
  return judged(() => parseText(text));
}

function judged(parse: () => ParsedText): Lane {
  try {
    return laneOf(oneStatement(parse()).node as unknown as Tree); // the tree is plain data
  } catch (error) {
    if (error instanceof QueryError || error instanceof RangeError) return DATA;
    throw error;
  }
}

function laneOf(node: Tree): Lane {
  const select = node['SelectStmt'] ?? explained(node);
  if (!isTree(select)) return DATA;
  const { system, data, writes } = referencesOf({ SelectStmt: select }, (name) => SYSTEM_RELATIONS.has(name));
  if (data) return system ? MIXED : DATA;
  if (!system && select === node['SelectStmt'] && isPlain(select)) return DATA;
  return writes === null ? CATALOG : Object.freeze({ kind: 'writes', command: writes });
}

/** The SELECT that an EXPLAIN is of; its plan names nothing that is not in the caller's catalog. */
function explained(node: Tree): unknown {
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

/** Remembers the lanes of the texts that come again and again. */
export class Classifier {
  readonly #lanes = new Map<string, Lane>();

  /** `parse` parses a text that is too long to be parsed here. */
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): Lane | Promise<Lane> {
    if (!MAY_BE_CATALOG.test(text)) return DATA;
    const known = this.#lanes.get(text);
    if (known !== undefined) return known;
    return isShort(text) ? this.#remembered(text, classify(text)) : this.#longLane(text, parse);
  }

  async #longLane(text: string, parse: (text: string) => Promise<ParsedText>): Promise<Lane> {
    try {
      const parsed = await parse(text);
      return this.#remembered(
        text,
        judged(() => parsed),
      );
    } catch (error) {
      if (error instanceof QueryError) return DATA; // the spine meets the same fault, and records it
      throw error;
    }
  }

  #remembered(text: string, lane: Lane): Lane {
    if (text.length <= CACHED_LENGTH) this.#remember(text, lane);
    return lane;
  }

  #remember(text: string, lane: Lane): void {
    this.#lanes.set(text, lane);
    if (this.#lanes.size <= CACHED) return;
    const [oldest] = this.#lanes.keys();
    if (oldest !== undefined) this.#lanes.delete(oldest);
  }
}

/**
 * Spares questions about data a second look at their syntax tree: they have a FROM, name nothing of the system,
 * escape no identifier, and call nothing in FROM. What slips through is refused by the compiler.
 */
const MAY_BE_CATALOG =
  /^\s*with\b|pg_|information_schema|u&"|\bfrom\s*\(|(?:\bfrom|\bjoin|,|\blateral)\s+[\w."]+\s*\(|^(?!.*\bfrom\b)/is;
