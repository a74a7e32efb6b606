import { relative } from 'node:path';
import { systemUrlVariable } from '../../src/model/manifest/index.js';
import { formatAnswer } from '../answer.js';
import { counted, print, printJson, terminalWidth, visible } from '../output.js';
import { citusText, tableOf } from '../proposal/index.js';
import { commandName, quoted, shellText } from '../serve/invocation.js';
import type { UrlSource } from './connect.js';
import type { Design } from './design.js';
import type { FirstAnswer } from './first-answer.js';
import { tenantColumn } from './questions.js';

export interface InitOutcome {
  readonly dir: string;
  readonly files: readonly string[];
  readonly design: Design;
  readonly source: UrlSource;
  /** URL of a created role, including its password, which is not stored anywhere. */
  readonly readerUrl: string | null;
  readonly first: FirstAnswer;
  readonly seconds: number;
}

function modelFacts({ drafted, keyed }: Design) {
  const { entities, bridges, relationships, catalog } = drafted.manifest;
  return {
    entities: entities.size,
    bridges: bridges.size,
    relationships: relationships.size,
    metrics: [...catalog.metrics.keys()],
    masked: [...catalog.relations.values()].flatMap((relation) =>
      relation.columns.filter((c) => c.sensitivity !== null).map((c) => `${relation.name}.${c.name}`),
    ),
    counted_keys: keyed.candidates
      .filter((c) => keyed.counted.has(tableOf(c)))
      .map((c) => `${tableOf(c)}: ${c.key.join(', ')}`),
  };
}

export function reportJson(outcome: InitOutcome): void {
  const { dir, files, design, source, first, readerUrl, seconds } = outcome;
  const { masked, counted_keys, ...counts } = modelFacts(design);
  printJson({
    dir,
    files,
    ...counts,
    masked,
    hidden: design.hidden,
    untyped: design.untyped,
    counted_keys,
    without_key: design.keyed.keyless,
    left_out: design.leftOut,
    foreign_keys_left_out: design.drafted.lostLinks,
    role: design.role,
    subject: design.subject,
    url_env: source.name,
    reader_url: readerUrl,
    row_security: design.rowSecurity,
    ...(design.citus === null ? {} : { citus: Object.fromEntries(design.citus) }),
    first: { osql: first.osql, columns: first.answer.columns, rows: first.answer.rows },
    next: nextCommands(outcome),
    seconds,
  });
}

const MOST_LISTED = 15;

export function report(outcome: InitOutcome): void {
  const { dir, files, design, source, first, seconds } = outcome;
  const { role, subject, rows, keyed } = design;
  const { entities, bridges, relationships, metrics, masked, counted_keys } = modelFacts(design);
  const counts = [
    counted(entities, 'entity', 'entities'),
    counted(bridges, 'bridge', 'bridges'),
    counted(relationships, 'relationship', 'relationships'),
    counted(metrics.length, 'metric', 'metrics'),
  ].join(', ');
  print(`\nWritten to ${dir}, in ${seconds.toFixed(1)} s:`);
  print(`  manifest.yaml  ${counts}`);
  print(
    `  policy.yaml    role ${role} for ${subject}: ${counted(masked.length, 'column', 'columns')} masked`,
  );
  if (files.includes('policy.test.yaml'))
    print('  policy.test.yaml  first tests of it, for `osl policy test`');
  print('  *.schema.json  what editors complete and check the two with');
  if (files.includes('.env.example'))
    print(
      `  .env.example   the variables; ${systemUrlVariable({ urlEnv: source.name })} is for text facets and suggestions`,
    );
  print('  .osl/          keys and audit log; kept out of git, as .env is');
  if (design.rowSecurity)
    print('  the database  row security, from policy.yaml: `osl row-security` compares and rewrites it');
  if (design.citus !== null) print(`  ${visible(citusText(design.citus))}`);
  section('Left out as credentials', design.hidden);
  section('Left out, as the model has no such type', design.untyped);
  section('Keys that were found by counting, not declared: check them in manifest.yaml', counted_keys);
  section(
    'Tables without a key (no TRAVERSE, no evidence, no order among equal rows)',
    keyed.keyless.map(({ table, reason }) => `${table}: ${reason}`),
  );
  section(
    'Tables that were left out',
    design.leftOut.map(({ table, reason }) => `${table}: ${reason}`),
  );
  section(
    'Foreign keys that are no relationship (manifest.yaml names them, too)',
    design.drafted.lostLinks.map(({ table, link, reason }) => `${table}: ${link}: ${reason}`),
  );
  const tenant = rows === null ? tenantColumn(keyed.candidates, design.citus) : null;
  if (tenant !== null) {
    const column = visible(tenant.column);
    print(`\n${subject} sees the rows of every ${column}; --rows ${column}=… shows those of one.`);
  }
  print(`\nThe first governed answer, as ${subject}:\n`);
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

function nextCommands({ dir, source, readerUrl, design, first }: InitOutcome): readonly string[] {
  const { issuerKey, subject } = design;
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
