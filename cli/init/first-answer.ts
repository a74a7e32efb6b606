import { identifier } from 'osl-compiler';
import type { Manifest } from '../../src/model/manifest/index.js';
import { openService } from '../../src/service/open.js';
import type { Settings } from '../../src/service/settings.js';
import { createHttpServer } from '../../src/surfaces/http/server.js';
import { parseAnswer } from '../answer.js';
import { type AnswerBody, postQuery } from '../client.js';
import { EXIT, Failure } from '../exit.js';
import { openIssuer } from '../issuer.js';
import { operatorLog } from '../log.js';
import { formatProblem, problemOf } from '../reply.js';

export interface FirstAnswer {
  readonly osql: string;
  readonly answer: AnswerBody;
}

const MOST_TRIED = 8;
const MOST_COLUMNS = 5;

/**
 * Serves the staged files over REST and queries one entity after another until one returns rows.
 *
 * @throws Failure if every query is refused; also errors of `openService`
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
    // A failing view must not stop this, because the next entity may answer.
    if (answer === null) failed ??= formatProblem(problemOf(reply.body, reply.status), osql);
    else if (answer.row_count > 0) return { osql, answer };
    else empty ??= { osql, answer };
  }
  if (empty !== null) return empty;
  if (failed !== null) throw new Failure(EXIT.failed, `error: no question was answered\n${failed}`);
  throw new Failure(EXIT.failed, 'error: the policy grants no entity: there is nothing to ask about');
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
