import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The parser's own description of its trees, as its types say it. */
export interface Grammar {
  /** Every node type. */
  readonly nodes: ReadonlySet<string>;
  /** Of each type, the type of each field. */
  readonly fields: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** The values of each enumeration. */
  readonly kinds: ReadonlyMap<string, readonly string[]>;
}

export function readGrammar(): Grammar {
  const dir = join(process.cwd(), 'node_modules', '@pgsql', 'types');
  const types = readFileSync(join(dir, 'types.d.ts'), 'utf8');
  const enums = readFileSync(join(dir, 'enums.d.ts'), 'utf8');
  const union = /export type Node = ([\s\S]*?)};\n/.exec(types)?.[1] ?? '';
  const interfaces = [...types.matchAll(/export interface (\w+) \{([\s\S]*?)\n\}/g)];
  return {
    nodes: new Set([...union.matchAll(/(\w+): \w+;/g)].map((m) => m[1] ?? '')),
    fields: new Map(
      interfaces.map((m) => [
        m[1] ?? '',
        new Map([...(m[2] ?? '').matchAll(/(\w+)\??: (\w+)/g)].map((f) => [f[1] ?? '', f[2] ?? ''])),
      ]),
    ),
    kinds: new Map(
      [...enums.matchAll(/export type (\w+) = ([^;]*);/g)].map((m) => [
        m[1] ?? '',
        [...(m[2] ?? '').matchAll(/"(\w+)"/g)].map((v) => v[1] ?? ''),
      ]),
    ),
  };
}

/** Contents of a tree: its node types, and its enumerated values as `Enumeration.VALUE`. */
export function partsOf(tree: unknown, grammar: Grammar): ReadonlySet<string> {
  const found = new Set<string>();
  const typed = (type: string, value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) typed(type, each);
    else if (grammar.kinds.has(type)) found.add(`${type}.${String(value)}`);
    else if (typeof value !== 'object' || value === null) return;
    else if (type === 'Node') for (const [name, inner] of Object.entries(value)) typed(name, inner);
    else {
      found.add(type);
      for (const [field, inner] of Object.entries(value)) {
        const of = grammar.fields.get(type)?.get(field);
        if (of !== undefined) typed(of, inner);
      }
    }
  };
  typed('Node', tree);
  return found;
}
