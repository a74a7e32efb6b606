/** Columns as SQL declares them: `id int4, name text not null, email text pii`; see `columnYaml`. */
type Columns = string;

/**
 * YAML of a manifest with one database, `db`: its tables by name, each with its columns, then the rest of the manifest.
 */
export function manifestText(
  tenant: string,
  tables: Readonly<Record<string, Columns>>,
  rest: string,
): string {
  return `
version: 1
tenant: ${tenant}
connectors:
  db:
    kind: pglite
    tables:
${Object.entries(tables).map(tableYaml).join('\n')}
${rest}`;
}

function tableYaml([name, columns]: readonly [string, Columns]): string {
  const lines = columns.split(/,\s+(?![^{]*\})/).map((column) => `          ${columnYaml(column)}`);
  return `      ${name}:\n        columns:\n${lines.join('\n')}`;
}

/** `NAME TYPE [not null] [pii | LABEL] [{ MORE }]`: a label of sensitivity, and other properties as YAML. */
function columnYaml(column: string): string {
  const [, name, type = '', notNull, label, more] =
    /^(\S+) (\S+)( not null)?(?: (\w+))?(?: \{ (.*) \})?$/.exec(column.trim()) ?? [];
  if (name === undefined) throw new Error(`not a column: ${column}`);
  const properties = [
    `type: ${type.endsWith('[]') ? `"${type}"` : type}`,
    ...(notNull === undefined ? [] : ['nullable: false']),
    ...(label === undefined ? [] : [label === 'pii' ? 'pii: true' : `sensitivity: ${label}`]),
    ...(more === undefined ? [] : [more]),
  ];
  return `${name}: { ${properties.join(', ')} }`;
}

/** YAML of grants on all columns of each of these, below a role's `grants:`; `more` as in `rows: shown`. */
export function grantsText(on: readonly string[], more?: string): string {
  const rest = more === undefined ? '' : `, ${more}`;
  return on.map((name) => `      - { on: ${name}, columns: "*"${rest} }`).join('\n');
}

/**
 * YAML of a policy: its subjects, each with the roles of its ceiling and other properties as YAML
 * (`analyst, clerk { admin: [TENANT_ADMIN] }`), then the rest.
 */
export function policyText(tenant: string, subjects: Readonly<Record<string, string>>, rest: string): string {
  const lines = Object.entries(subjects).map(([name, given]) => {
    const [, ceiling = '', more] = /^([^{]*?)(?: ?\{ (.*) \})?$/.exec(given) ?? [];
    return `  ${name}: { ceiling: [${ceiling}]${more === undefined ? '' : `, ${more}`} }`;
  });
  return `
version: 1
tenant: ${tenant}
subjects:
${lines.join('\n')}
${rest}`;
}

/** YAML of a facet over the documents `id` with the text `body` of a table; more lines may follow. */
export function facetText(name: string, table: string, entity: string, key: string): string {
  return `  ${name}:
    source: db.${table}
    entity: ${entity}
    entity_key: ${key}
    document_id: id
    text: body`;
}

/** An entity, and the columns of a bridge that hold its key. */
type BridgeEnd = readonly [entity: string, ...columns: string[]];

/** YAML of a bridge whose columns are those of its two ends, and `more`. */
export function bridgeText(
  name: string,
  table: string,
  left: BridgeEnd,
  right: BridgeEnd,
  ...more: readonly string[]
): string {
  const end = ([entity, ...columns]: BridgeEnd) => `{ entity: ${entity}, columns: [${columns.join(', ')}] }`;
  return `  ${name}:
    source: db.${table}
    left: ${end(left)}
    right: ${end(right)}
    columns: [${[...left.slice(1), ...right.slice(1), ...more].join(', ')}]`;
}
