import type { Access } from 'osl-compiler';
import { effectiveAccess, type PolicySnapshot } from '../../policy/index.js';
import { entityExamples, governedView, metricExamples } from '../../src/model/graph/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';

export interface ShellExample {
  readonly subject: string;
  readonly about: string;
  /** Caller flags for `osl token`. */
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
 * A query for rows of an entity if possible, otherwise for a count, otherwise for a metric; null if nothing is
 * visible.
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
