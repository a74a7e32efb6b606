import type { Model } from '../../../model/model.js';
import { addressOf, restUrl, type ServerRecord, urlHost } from '../server-file.js';
import { DEMO_EXAMPLES, type Example, genericExamples } from './examples.js';
import { commandName, dataDirFlag, quoted, shellText, singleQuoted } from './invocation.js';

/** What `--json` prints in place of the banner. */
export function listening(record: ServerRecord, dataDir: string) {
  const { pid, httpPort, pgPort, startedAt } = record;
  return { event: 'listening', rest: restUrl(record), pid, httpPort, pgPort, dataDir, startedAt };
}

/** Where the server is, and what to try. */
export function banner(record: ServerRecord, dataDir: string, model: Model, hasConsole: boolean): string {
  const known = record.demo ? DEMO_EXAMPLES : genericExamples(model);
  const examples = record.localTokens ? known : [];
  const title = record.demo ? ': the software supply chain of this installation' : '';
  const parts = [
    `OSL Gateway ${record.version}${title}`,
    '',
    `  REST  ${restUrl(record)}`,
    `  wire  postgres://${urlHost(addressOf(record))}:${record.pgPort}/osl   (user: a subject, password: its token)`,
    `  data  ${dataDir}`,
    ...(hasConsole ? ['', `  Look at it in a browser: ${restUrl(record)}/console/`] : []),
    '',
  ];
  if (examples.length > 0) parts.push('Try, from another terminal; each line mints its own token:', '');
  parts.push(...examples.flatMap((example) => [...queryLines(example, dataDir), '']));
  const [first] = examples;
  if (first !== undefined) parts.push(...otherWays(record, first, dataDir), '');
  return parts.join('\n');
}

function queryLines({ subject, about, who, osql }: Example, dataDir: string): readonly string[] {
  const osl = commandName();
  const at = dataDirFlag(dataDir);
  return [
    `  # ${subject}: ${about}`,
    `  ${osl} query${at} --token "$(${osl} token${at} ${who.map(quoted).join(' ')})" ${shellText(osql)}`,
  ];
}

/** The question of the example, asked with curl and with psql. */
function otherWays(record: ServerRecord, example: Example, dataDir: string): readonly string[] {
  const mint = `$(${commandName()} token${dataDirFlag(dataDir)} ${example.who.map(quoted).join(' ')})`;
  const body = JSON.stringify({ osql: example.osql });
  // Whoever tries it on this machine calls it by an address that its certificate need not name.
  const trust = record.httpCertFile === '' ? '' : '-k ';
  const mode = record.tls ? 'PGSSLMODE=require ' : '';
  return [
    '  # the same with curl, and with psql',
    `  curl -s ${trust}${restUrl(record)}/osl/query -H "Authorization: Bearer ${mint}" -H 'Content-Type: application/json' -d ${singleQuoted(body)}`,
    `  ${mode}PGPASSWORD="${mint}" psql -h ${addressOf(record)} -p ${record.pgPort} -U ${quoted(example.subject)} -d osl -c ${shellText(example.osql)}`,
  ];
}
