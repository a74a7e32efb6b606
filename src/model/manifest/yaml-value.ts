import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { CODES, type Path, type UnplacedDiagnostic } from './diagnostic.js';

const DEEPEST = 32;
/** Maximum number of nodes that aliases may repeat. Ten nested lists, a "YAML bomb", would repeat about 10⁹ nodes. */
const MOST_ALIASED = 100_000;

interface YamlWalk {
  readonly anchors: Map<string, Node>;
  readonly problems: UnplacedDiagnostic[];
  aliased: number;
}

/** Converts the document to plain data. Aliases are expanded, within limits; objects have no prototype. */
export function plainValue(document: Document.Parsed): {
  readonly value: unknown;
  readonly problems: UnplacedDiagnostic[];
} {
  const walk: YamlWalk = { anchors: new Map(), problems: [], aliased: 0 };
  return { value: convert(walk, document.contents, [], false), problems: walk.problems };
}

function convert(walk: YamlWalk, node: Node | null, path: Path, inAlias: boolean): unknown {
  if (stopped(walk)) return null;
  if (path.length > DEEPEST) {
    return stop(walk, path, CODES.tooDeep, `the file has more than ${DEEPEST} levels`);
  }
  if (inAlias && ++walk.aliased > MOST_ALIASED) {
    return stop(walk, path, CODES.aliases, `aliases repeat more than ${MOST_ALIASED} nodes`);
  }
  if (node === null) return null;
  if (isAlias(node)) return repeated(walk, node, path);
  if (!inAlias && node.anchor !== undefined) walk.anchors.set(node.anchor, node);
  if (isScalar(node)) return node.value;
  if (isSeq(node)) return node.items.map((item, i) => convert(walk, asNode(item), [...path, i], inAlias));
  return isMap(node) ? members(walk, node, path, inAlias) : null;
}

function repeated(walk: YamlWalk, alias: Alias, path: Path): unknown {
  const node = walk.anchors.get(alias.source);
  if (node !== undefined) return convert(walk, node, path, true);
  return stop(walk, path, CODES.aliases, `the alias \`*${alias.source}\` has no anchor before it`);
}

function members(walk: YamlWalk, map: YAMLMap, path: Path, inAlias: boolean): unknown {
  const object: Record<string, unknown> = Object.create(null);
  for (const pair of map.items) {
    if (stopped(walk)) break;
    if (!isScalar(pair.key)) {
      stop(walk, path, CODES.key, 'a key must be plain text');
      break;
    }
    const key = keyText(pair.key);
    if (key in object) walk.problems.push(twice(pair.key, key, path));
    else object[key] = convert(walk, asNode(pair.value), [...path, key], inAlias);
  }
  return object;
}

/** Returns a key as written. YAML reads a plain `007` as the number 7, which would be another name. */
export function keyText({ value, source }: Scalar): string {
  return typeof value === 'string' ? value : (source ?? `${value}`);
}

function twice(node: Scalar, key: string, path: Path): UnplacedDiagnostic {
  return {
    path: [...path, key],
    ...(node.range !== undefined && node.range !== null && { span: [node.range[0], node.range[1]] }),
    code: CODES.duplicateKey,
    message: `\`${key}\` is given twice`,
    hint: null,
  };
}

/** Cast: `parseDocument` represents everything in a collection as nodes. */
function asNode(item: unknown): Node | null {
  return item as Node | null;
}

/** True if the walk has stopped. Repeated keys are collected; any other problem ends the walk. */
function stopped(walk: YamlWalk): boolean {
  const last = walk.problems.at(-1);
  return last !== undefined && last.code !== CODES.duplicateKey;
}

function stop(walk: YamlWalk, path: Path, code: string, message: string): null {
  walk.problems.push({ path, code, message, hint: null });
  return null;
}
