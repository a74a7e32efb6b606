/** Size of a generated model. */
export interface Size {
  readonly entities: number;
  readonly grants: number;
}

/** Roles that share the grants; the subject of the bench has all of them. */
const ROLES = 10;

/**
 * Generates a manifest of `entities` similar entities, as an author would write it: in flow style if it fits on a line.
 */
export function manifestYaml({ entities }: Size): string {
  const names = Array.from({ length: entities }, (_, i) => nameOf(i));
  return [
    'version: 1',
    'tenant: bench',
    'connectors:',
    '  main:',
    '    kind: postgres',
    '    url_env: BENCH_DATABASE_URL',
    '    tables:',
    ...names.flatMap((name) => [
      `      shop.${name}:`,
      '        columns:',
      '          id: { type: int8 }',
      '          customer_id: { type: int8 }',
      '          status: { type: text }',
      '          region: { type: text }',
      '          email: { type: text, pii: true }',
      '          amount: { type: numeric }',
      '          created_at: { type: timestamp }',
    ]),
    'entities:',
    ...names.flatMap((name) => [
      `  ${name}:`,
      `    description: The orders of shop ${name}.`,
      `    source: main.shop.${name}`,
      '    primary_key: [id]',
      '    entity_key_columns: [id, customer_id]',
      '    columns: [id, customer_id, status, region, email, amount, created_at]',
    ]),
    '',
  ].join('\n');
}

/** Generates a policy of `grants` grants, spread evenly over roles and entities, each with a different row filter. */
export function policyYaml({ entities, grants }: Size): string {
  const perRole = grants / ROLES;
  const roles = Array.from({ length: ROLES }, (_, role) => [
    `  role_${role}:`,
    '    grants:',
    ...Array.from({ length: perRole }, (_, i) =>
      grantLine(nameOf(i % entities), role, Math.floor(i / entities)),
    ),
  ]);
  return [
    'version: 1',
    'tenant: bench',
    'subjects:',
    '  user:bench:',
    `    ceiling: [${roleNames().join(', ')}]`,
    '    attributes: { region: eu }',
    '    admin: [TENANT_ADMIN]',
    'roles:',
    ...roles.flat(),
    'masks: { pii: redact }',
    '',
  ].join('\n');
}

function grantLine(entity: string, role: number, again: number): string {
  const rows = `region = attribute('region') and customer_id > ${role + ROLES * again}`;
  return `      - { on: ${entity}, columns: "*", rows: "${rows}" }`;
}

export function roleNames(): readonly string[] {
  return Array.from({ length: ROLES }, (_, i) => `role_${i}`);
}

/** Name of entity `i`; the first is the one that the query of the compile bench uses. */
function nameOf(i: number): string {
  return i === 0 ? 'orders' : `orders_${i}`;
}
