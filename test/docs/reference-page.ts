import { parse } from 'yaml';

/** The parts of a JSON Schema that the manifest's and the policy's are made of. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Schema;
  readonly additionalProperties?: Schema | false;
  readonly items?: Schema;
}

/** Parts of a reference page: the schema, a file that has every key, and the words between. */
export interface Reference {
  readonly title: string;
  readonly intro: string;
  readonly schema: Schema;
  /** YAML. */
  readonly example: string;
  /** A text for each member of the root. */
  readonly sections: Readonly<Record<string, string>>;
  /** Further sections at the end of the page. */
  readonly more?: string;
}

/** One key that a file may have: `entities.<name>.source`. */
interface Key {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/** The whole page: per member of the root its text, the example's lines of it, and a table of its keys. */
export function referencePage({ title, intro, schema, example, sections, more }: Reference): string {
  const parts = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const rows = keysOf(member, name, schema.required?.includes(name) ?? false).map(rowOf);
    const text = sections[name];
    if (text === undefined) throw new Error(`${title}: nothing is said of \`${name}\``);
    return [
      `## ${name}`,
      text,
      `\`\`\`yaml\n${linesOf(example, name)}\n\`\`\``,
      ['| key | takes | |', '| --- | --- | --- |', ...rows].join('\n'),
    ].join('\n\n');
  });
  const all = [...parts, ...(more === undefined ? [] : [more])];
  return `# ${title}\n\n${intro}\n\n${all.join('\n\n')}\n`;
}

/** Paths of keys that no part of the example has. */
export function keysWithoutExample({ schema, example }: Reference): readonly string[] {
  const found = pathsIn(parse(example), schema, '');
  return Object.entries(schema.properties ?? {})
    .flatMap(([name, member]) => keysOf(member, name, false))
    .map((k) => k.path)
    .filter((path) => !found.has(path));
}

const MEMBER = '‹name›';

function keysOf(schema: Schema, path: string, required: boolean): readonly Key[] {
  return [{ path, schema, required }, ...keysBelow(schema, path)];
}

function keysBelow(schema: Schema, path: string): readonly Key[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
    keysOf(member, `${path}.${name}`, schema.required?.includes(name) ?? false),
  );
  const named = schema.additionalProperties
    ? keysBelow(schema.additionalProperties, `${path}.${MEMBER}`)
    : [];
  return [...own, ...named, ...(schema.items === undefined ? [] : keysBelow(schema.items, `${path}[]`))];
}

/** The paths of all keys of `value`, names that the author chose as `‹name›`. */
function pathsIn(value: unknown, schema: Schema | undefined, path: string): Set<string> {
  const found = new Set<string>();
  const add = (paths: Iterable<string>): void => {
    for (const p of paths) found.add(p);
  };
  if (Array.isArray(value)) for (const item of value) add(pathsIn(item, schema?.items, `${path}[]`));
  else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      const own = schema?.properties?.[name];
      const key = [path, own === undefined ? MEMBER : name].filter((p) => p !== '').join('.');
      found.add(key);
      add(pathsIn(inner, own ?? (schema?.additionalProperties || undefined), key));
    }
  }
  return found;
}

function rowOf({ path, schema, required }: Key): string {
  const cells = [`\`${path}\`${required ? ' (required)' : ''}`, takes(schema), schema.description ?? ''];
  return `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`;
}

function takes(schema: Schema): string {
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((v) => `\`${String(v)}\``).join(', ');
  const types = [schema.type ?? 'object'].flat().map((type) => (type === 'array' ? 'list' : type));
  const least =
    schema.minimum ??
    (schema.exclusiveMinimum === undefined ? undefined : `more than ${schema.exclusiveMinimum}`);
  const range =
    least === undefined && schema.maximum === undefined ? '' : `, ${least ?? ''} to ${schema.maximum ?? '…'}`;
  return `${types.map((t) => WORDS[t] ?? t).join(' or ')}${range}`;
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  object: 'mapping',
  boolean: '`true` or `false`',
  integer: 'whole number',
  null: 'nothing',
};

/** The lines of `yaml` that belong to the member `name` of its root. */
function linesOf(yaml: string, name: string): string {
  const lines = yaml.split('\n');
  const from = lines.findIndex((line) => line === `${name}:` || line.startsWith(`${name}: `));
  if (from < 0) throw new Error(`the example has no \`${name}\``);
  const rest = lines.slice(from + 1);
  const length = rest.findIndex((line) => /^\S/.test(line));
  return [lines[from], ...(length < 0 ? rest : rest.slice(0, length))].join('\n').trimEnd();
}
