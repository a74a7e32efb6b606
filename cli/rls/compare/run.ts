import { join, resolve } from 'node:path';
import { ready } from 'osl-compiler';
import { nameFrom } from '../../../src/model/manifest/index.js';
import { loadModel } from '../../../src/service/model.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { EXIT, usage } from '../../exit.js';
import { print, printJson } from '../../output.js';
import { checkedDatabase } from '../checked-database.js';
import { catalogOf, type DatabaseFlags, openDatabase, scopeOf, urlOf } from '../database.js';
import { importedPolicy } from '../import/draft.js';
import { attributesOfCaller, type ComparedCaller, callersIn } from './callers.js';
import { comparedColumns } from './compared-columns.js';
import { type Comparison, compared, comparisonText, notCompared } from './comparison.js';
import { rowsOfGateway, rowsUnderRowSecurity } from './rows.js';
import { sampledCallers } from './sampled-callers.js';
import { withServedFiles } from './served-files.js';

export interface RlsCompareFlags extends DatabaseFlags {
  readonly callers?: string;
  readonly sample: number;
  readonly rows: number;
  readonly json?: boolean;
}

/**
 * Compares the rows of callers under row security with those through the gateway, for each entity that their role is
 * granted, and sets exit status 1 unless the gateway shows the same rows, or fewer.
 *
 * @throws Failure for wrong flags and a database that cannot be reached; the errors of `loadModel` and `openService`
 */
export async function runRlsCompare(folder: string, flags: RlsCompareFlags): Promise<void> {
  await ready();
  const dir = resolve(process.cwd(), folder);
  const url = await urlOf(flags);
  const survey = await openDatabase(url);
  try {
    const catalog = await catalogOf(survey);
    const files = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')] as const;
    const { manifest, snapshot } = await loadModel(...files, null);
    if (snapshot === null) throw usage(`${files[1]} is no policy`);
    const database = checkedDatabase(catalog, scopeOf(flags, catalog));
    const { attributes, views } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
    const roles = database.roles
      .filter(({ name }) => snapshot.roles.has(nameFrom(name)))
      .map(({ name }) => name);
    const callers =
      flags.callers === undefined
        ? await sampledCallers(survey.system, { manifest, snapshot }, attributes, roles, flags.sample)
        : callersIn(flags.callers);
    const subjects = callers.map((caller) => ({
      ceiling: [nameFrom(caller.role)],
      attributes: attributesOfCaller(caller, attributes),
    }));
    const found: Comparison[] = [];
    await withGateway(files, subjects, flags.rows, async (gateway) => {
      for (const [i, caller] of callers.entries())
        for (const [name, grants] of snapshot.roles.get(nameFrom(caller.role))?.grants ?? []) {
          const relation = manifest.catalog.relations.get(name);
          if (relation === undefined) continue;
          const granted = new Set(grants.flatMap(({ columns }) => [...columns]));
          const columns = comparedColumns(relation, views.get(name) ?? null, granted);
          if (columns === null) {
            found.push(notCompared(caller, name));
            continue;
          }
          const under = await rowsUnderRowSecurity(survey.system, columns, caller, flags.rows);
          const through = await rowsOfGateway(gateway.url, await gateway.token(i), columns, flags.rows);
          found.push(compared(caller, columns, under, through));
        }
    });
    report(found, callers, flags);
  } finally {
    survey.close();
  }
}

function report(
  found: readonly Comparison[],
  callers: readonly ComparedCaller[],
  { json }: RlsCompareFlags,
): void {
  if (json === true) printJson({ callers: callers.length, comparisons: found });
  else for (const line of comparisonText(found, callers.length)) print(line);
  if (found.some(({ result }) => result === 'differs' || result === 'wider')) process.exitCode = EXIT.failed;
}

interface Gateway {
  readonly url: string;
  /** A token of the caller's subject. */
  token(caller: number): Promise<string>;
}

/** Serves the files over REST in this process, with a subject for each caller. */
function withGateway(
  [manifestFile, policyFile]: readonly [string, string],
  subjects: readonly object[],
  most: number,
  work: (gateway: Gateway) => Promise<void>,
): Promise<void> {
  return withServedFiles({ manifestFile, policyFile, subjects, maxRows: most + 1 }, async (opened) => {
    const rest = await createHttpServer(opened.service);
    try {
      const { port } = await rest.listen(0, '127.0.0.1');
      await work({ url: `http://127.0.0.1:${port}`, token: opened.token });
    } finally {
      await rest.close(0);
    }
  });
}
