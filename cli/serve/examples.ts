import type { Access } from 'osl-compiler';
import { effectiveAccess, type PolicySnapshot } from '../../policy/index.js';
import { entityExamples, governedView, metricExamples } from '../../src/model/graph/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { formatAnswer, parseAnswer } from '../answer.js';
import { localServerUrl, postQuery } from '../client.js';
import { openIssuer } from '../issuer.js';
import { formatProblem, problemOf } from '../reply.js';
import type { RunningServer } from './server.js';

export interface ShellExample {
  readonly subject: string;
  readonly about: string;
  /** Flags of `osl token` that name the caller. */
  readonly who: readonly string[];
  readonly osql: string;
}

const PEOPLE = 'select name, email from osl.entities.person order by name limit 3';
const LICENSES =
  'select license, count(*) as packages from osl.entities.package group by license order by packages desc, license limit 5';

export const DEMO_EXAMPLES: readonly ShellExample[] = [
  {
    subject: 'user:analyst',
    about: 'all packages; people, but not their addresses',
    who: ['--subject', 'user:analyst'],
    osql: PEOPLE,
  },
  {
    subject: 'user:auditor',
    about: 'everything, in the clear',
    who: ['--subject', 'user:auditor'],
    osql: PEOPLE,
  },
  {
    subject: 'user:counsel',
    about: 'only packages that are not under MIT, ISC, BSD or Apache terms',
    who: ['--subject', 'user:counsel'],
    osql: LICENSES,
  },
  {
    subject: 'agent:scout',
    about: 'an agent that acts for user:counsel: what both may see',
    who: ['--subject', 'agent:scout', '--chain', 'user:counsel,agent:scout'],
    osql: LICENSES,
  },
  {
    subject: 'user:admin',
    about: 'packages, and nothing about people',
    who: ['--subject', 'user:admin'],
    osql: 'select measure(package_count) as packages, measure(install_bytes) as bytes from osl.entities.package',
  },
];

export const DEMO_CALLERS = DEMO_EXAMPLES.map(({ subject, about, who }) => {
  const at = who.indexOf('--chain');
  return { chain: at < 0 ? [subject] : (who[at + 1] ?? subject).split(','), about };
});

const MOST_SUBJECTS = 8;

export function genericExamples({ manifest, snapshot }: Model): readonly ShellExample[] {
  if (snapshot === null) return [];
  return [...snapshot.subjects].slice(0, MOST_SUBJECTS).flatMap(([subject, { ceiling }]) => {
    const osql = firstQuestion(manifest, accessOfToken(subject, [...ceiling], manifest, snapshot));
    if (osql === null) return [];
    return [{ subject, about: `roles ${[...ceiling].join(', ')}`, who: ['--subject', subject], osql }];
  });
}

function accessOfToken(
  subject: string,
  aclRoles: readonly string[],
  { catalog }: Manifest,
  snapshot: PolicySnapshot,
): Access {
  const identity = { tenant: snapshot.tenant, subject, chain: [subject], roles: [], aclRoles };
  return effectiveAccess({ ...identity, issuedAt: 0, expiresAt: 0, tokenId: '' }, snapshot, catalog);
}

/**
 * Returns a first query to try: for rows of an entity if possible, otherwise for a count, otherwise for a metric; null
 * if nothing is visible.
 */
function firstQuestion(manifest: Manifest, access: Access): string | null {
  const { entities, metrics } = governedView(manifest, access);
  const rows = entities.filter((e) => e.columns.some((c) => c.rows));
  const questions = [
    ...[...rows, ...entities].flatMap((e) => entityExamples(e, [])),
    ...metrics.flatMap(metricExamples),
  ];
  return questions[0] ?? null;
}

interface TourQuestion {
  readonly subject: string;
  readonly asks: string;
  readonly osql: string;
  /** Text printed below an answer without rows. */
  readonly none?: string;
}

const QUESTIONS: readonly TourQuestion[] = [
  {
    subject: 'user:analyst',
    asks: 'Which licences take the most room?',
    osql: 'select license, count(*) as packages, sum(install_bytes) as bytes from osl.entities.package group by license order by bytes desc limit 5',
  },
  {
    subject: 'user:analyst',
    asks: 'Who is named in the most packages? (An analyst does not see addresses.)',
    osql: 'select p.name, p.email, count(*) as credits from osl.entities.person p join osl.entities.credit c on c.person_id = p.id group by p.name, p.email order by credits desc, p.name limit 5',
  },
  {
    subject: 'user:counsel',
    asks: 'Which licences are not MIT, ISC, BSD or Apache? (Counsel sees no other packages.)',
    osql: 'select license, count(*) as packages from osl.entities.package group by license order by packages desc, license limit 5',
    none: 'No rows: every package that is installed here is under one of these terms.',
  },
];

export async function tour({ record, settings }: RunningServer): Promise<string> {
  const issuer = await openIssuer(settings, record.policyFile);
  const url = localServerUrl(record);
  const parts = ['Three questions, asked just now:', ''];
  for (const { subject, asks, osql, none } of QUESTIONS) {
    const { token } = await issuer.mint({ subject });
    const reply = await postQuery(url, token, { osql });
    const answer = reply.ok ? parseAnswer(reply.body) : null;
    const shown =
      answer === null ? formatProblem(problemOf(reply.body, reply.status), osql) : formatAnswer(answer);
    const empty = answer !== null && answer.rows.length === 0 && none !== undefined;
    parts.push(asks, `${subject}> ${osql}`, '', shown, ...(empty ? [none] : []), '');
  }
  return parts.join('\n');
}
