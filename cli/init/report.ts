import { relative } from 'node:path';
import { systemUrlVariable } from '../../src/model/manifest/index.js';
import { formatAnswer } from '../answer.js';
import { counted, print, printJson, terminalWidth, visible } from '../output.js';
import type { ExcludedTable, LostLink } from '../proposal/index.js';
import { commandName, quoted, shellText } from '../serve/invocation.js';
import type { UrlSource } from './connect.js';
import type { KeylessTable } from './design.js';
import type { FirstAnswer } from './first-answer.js';

export interface Outcome {
  readonly dir: string;
  readonly files: readonly string[];
  readonly entities: number;
  readonly bridges: number;
  readonly relationships: number;
  readonly metrics: readonly string[];
  /** Foreign keys without a relationship. */
  readonly lostLinks: readonly LostLink[];
  readonly masked: readonly string[];
  readonly hidden: readonly string[];
  readonly untyped: readonly string[];
  readonly counted: readonly string[];
  readonly keyless: readonly KeylessTable[];
  readonly leftOut: readonly ExcludedTable[];
  readonly role: string;
  readonly subject: string;
  readonly issuerKey: string | null;
  readonly source: UrlSource;
  /** URL of a created role, with its password, which is stored nowhere. */
  readonly readerUrl: string | null;
  readonly rowSecurity: boolean;
  readonly tenantColumn: string | null;
  readonly first: FirstAnswer;
  readonly seconds: number;
}

export function reportJson(outcome: Outcome): void {
  const { dir, files, entities, bridges, relationships, masked, hidden, untyped, leftOut, first } = outcome;
  printJson({
    dir,
    files,
    entities,
    bridges,
    relationships,
    metrics: outcome.metrics,
    masked,
    hidden,
    untyped,
    counted_keys: outcome.counted,
    without_key: outcome.keyless,
    left_out: leftOut,
    foreign_keys_left_out: outcome.lostLinks,
    role: outcome.role,
    subject: outcome.subject,
    url_env: outcome.source.name,
    reader_url: outcome.readerUrl,
    row_security: outcome.rowSecurity,
    first: { osql: first.osql, columns: first.answer.columns, rows: first.answer.rows },
    next: nextCommands(outcome),
    seconds: outcome.seconds,
  });
}

const MOST_LISTED = 15;

export function report(outcome: Outcome): void {
  const { entities, bridges, relationships, masked, hidden, untyped, leftOut, first } = outcome;
  const counts = [
    counted(entities, 'entity', 'entities'),
    counted(bridges, 'bridge', 'bridges'),
    counted(relationships, 'relationship', 'relationships'),
    counted(outcome.metrics.length, 'metric', 'metrics'),
  ].join(', ');
  print(`\nWritten to ${outcome.dir}, in ${outcome.seconds.toFixed(1)} s:`);
  print(`  manifest.yaml  ${counts}`);
  print(
    `  policy.yaml    role ${outcome.role} for ${outcome.subject}: ${counted(masked.length, 'column', 'columns')} masked`,
  );
  if (outcome.files.includes('policy.test.yaml'))
    print('  policy.test.yaml  first tests of it, for `osl policy test`');
  print('  *.schema.json  what editors complete and check the two with');
  if (outcome.files.includes('.env.example'))
    print(
      `  .env.example   the variables; ${systemUrlVariable({ urlEnv: outcome.source.name })} is for text facets and suggestions`,
    );
  print('  .osl/          keys and audit log; kept out of git, as .env is');
  if (outcome.rowSecurity)
    print('  the database  row security, from policy.yaml: `osl row-security` compares and rewrites it');
  section('Left out as credentials', hidden);
  section('Left out, as the model has no such type', untyped);
  section('Keys that were found by counting, not declared: check them in manifest.yaml', outcome.counted);
  section(
    'Tables without a key (no TRAVERSE, no evidence, no order among equal rows)',
    outcome.keyless.map(({ table, reason }) => `${table}: ${reason}`),
  );
  section(
    'Tables that were left out',
    leftOut.map(({ table, reason }) => `${table}: ${reason}`),
  );
  section(
    'Foreign keys that are no relationship (manifest.yaml names them, too)',
    outcome.lostLinks.map(({ table, link, reason }) => `${table}: ${link}: ${reason}`),
  );
  if (outcome.tenantColumn !== null) {
    const column = visible(outcome.tenantColumn);
    print(`\n${outcome.subject} sees the rows of every ${column}; --rows ${column}=… shows those of one.`);
  }
  print(`\nThe first governed answer, as ${outcome.subject}:\n`);
  print(`${first.osql}\n`);
  print(formatAnswer(first.answer, terminalWidth()));
  print('\nNext:\n');
  for (const line of nextCommands(outcome)) print(`  ${line}`);
}

function section(title: string, items: readonly string[]): void {
  if (items.length === 0) return;
  print(`\n${title}:`);
  for (const item of items.slice(0, MOST_LISTED)) print(`  ${visible(item)}`);
  if (items.length > MOST_LISTED) print(`  and ${items.length - MOST_LISTED} more (--json lists them)`);
}

function nextCommands({ dir, source, readerUrl, issuerKey, subject, first }: Outcome): readonly string[] {
  const osl = commandName();
  const here = relative(process.cwd(), dir);
  const keys = issuerKey === null ? '' : `OSL_PUBLIC_KEYS=${quoted(issuerKey)} `;
  return [
    ...(here === '' ? [] : [`cd ${quoted(here)}`]),
    ...exportOf(source, readerUrl),
    `${keys}${osl} serve`,
    issuerKey === null
      ? `${osl} query --subject ${quoted(subject)} ${shellText(first.osql)}    # in another terminal`
      : `${osl} query --token "$TOKEN" ${shellText(first.osql)}    # in another terminal, with a token of your issuer`,
  ];
}

function exportOf(source: UrlSource, readerUrl: string | null): readonly string[] {
  if (readerUrl !== null)
    return [`export ${source.name}=${quoted(readerUrl)}    # shown once: keep it as a secret`];
  if (source.kind === 'file') return [`export ${source.name}_FILE=${quoted(source.file)}`];
  return source.kind === 'variable' ? [] : [`export ${source.name}=…    # the URL that you gave`];
}
