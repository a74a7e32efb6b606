import { relative } from 'node:path';
import { identifier } from 'osl-compiler';
import { type Manifest, systemUrlVariable } from '../../src/model/manifest/index.js';
import { openService } from '../../src/service/open.js';
import type { Settings } from '../../src/service/settings.js';
import { createHttpServer } from '../../src/surfaces/http/server.js';
import { formatAnswer, parseAnswer } from '../answer.js';
import { type AnswerBody, postQuery } from '../client.js';
import { citusText } from '../doctor/citus.js';
import { failure } from '../exit.js';
import { openIssuer } from '../issuer.js';
import { operatorLog } from '../log.js';
import { counted, print, printJson, terminalWidth, visible } from '../output.js';
import { tableOf } from '../proposal/index.js';
import { formatProblem, problemOf } from '../reply.js';
import { commandName, quoted, shellText } from '../serve/invocation.js';
import type { UrlSource } from './connect.js';
import type { Design } from './design.js';
import { tenantColumn } from './questions.js';

export interface FirstAnswer {
  readonly osql: string;
  readonly answer: AnswerBody;
}

const MOST_TRIED = 8;
const MOST_COLUMNS = 5;

/**
 * Serves the staged files over REST and queries one entity after another until an answer has rows. Otherwise returns
 * the first empty answer.
 *
 * @throws Failure if every query is refused or the policy grants no entity; also errors of `openService`
 */
export async function firstAnswer(settings: Settings, subject: string): Promise<FirstAnswer> {
  const open = await openService(settings, operatorLog());
  try {
    const rest = await createHttpServer(open.service);
    try {
      const { port } = await rest.listen(0, '127.0.0.1');
      const { manifest, snapshot } = open.service.model();
      const granted = [...(snapshot?.roles.values() ?? [])].flatMap((role) => [...role.grants.keys()]);
      const { token } = await (await openIssuer(settings, settings.policyFile)).mint({ subject });
      return await firstWithRows(questionsOf(manifest, granted), `http://127.0.0.1:${port}`, token);
    } finally {
      await rest.close(0);
    }
  } finally {
    await open.close();
  }
}

async function firstWithRows(questions: readonly string[], url: string, token: string): Promise<FirstAnswer> {
  let empty: FirstAnswer | null = null;
  let failed: string | null = null;
  for (const osql of questions) {
    const reply = await postQuery(url, token, { osql });
    const answer = reply.ok ? parseAnswer(reply.body) : null;
    // A failing view must not stop the search, because the next entity may answer.
    if (answer === null) failed ??= formatProblem(problemOf(reply.body, reply.status), osql);
    else if (answer.row_count > 0) return { osql, answer };
    else empty ??= { osql, answer };
  }
  if (empty !== null) return empty;
  if (failed !== null) throw failure(`no question was answered\n${failed}`);
  throw failure('the policy grants no entity: there is nothing to ask about');
}

function questionsOf(manifest: Manifest, granted: readonly string[]): readonly string[] {
  const referred = new Map<string, number>();
  for (const { to } of manifest.relationships.values())
    referred.set(to.entity, (referred.get(to.entity) ?? 0) + 1);
  const weight = (name: string): number => {
    const masks = manifest.catalog.relations.get(name)?.columns.some((c) => c.sensitivity !== null) === true;
    return (referred.get(name) ?? 0) + (masks ? 1_000 : 0);
  };
  const entities = [...manifest.entities.keys()]
    .filter((name) => granted.includes(name))
    .sort((a, b) => weight(b) - weight(a));
  return entities.slice(0, MOST_TRIED).map((name) => {
    const relation = manifest.catalog.relations.get(name);
    const columns = relation?.columns ?? [];
    const key = columns.filter((c) => relation?.primaryKey.includes(c.name));
    const masked = columns.filter((c) => c.sensitivity !== null && !key.includes(c)).slice(0, 1);
    const rest = columns.filter((c) => !key.includes(c) && !masked.includes(c));
    const shown = [
      ...key,
      ...rest.slice(0, Math.max(1, MOST_COLUMNS - key.length - masked.length)),
      ...masked,
    ];
    const list = shown.map((c) => identifier(c.name)).join(', ');
    return `select ${list} from osl.entities.${identifier(name)} limit 3`;
  });
}

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
