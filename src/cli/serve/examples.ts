import type { Model } from '../../service.js';

/** A question that one subject may ask, as one line of a shell. */
export interface Example {
  readonly subject: string;
  readonly about: string;
  /** Flags of `osl token`. */
  readonly who: string;
  /** Fits between double quotes in a shell, and between single ones. */
  readonly osql: string;
}

const PEOPLE = 'select name, email from osl.entities.person order by name limit 3';
const LICENSES =
  'select license, count(*) as packages from osl.entities.package group by license order by packages desc, license limit 5';

export const DEMO_EXAMPLES: readonly Example[] = [
  {
    subject: 'user:analyst',
    about: 'all packages; people, but not their addresses',
    who: '--subject user:analyst',
    osql: PEOPLE,
  },
  {
    subject: 'user:auditor',
    about: 'everything, in the clear',
    who: '--subject user:auditor',
    osql: PEOPLE,
  },
  {
    subject: 'user:counsel',
    about: 'only packages that are not under MIT, ISC, BSD or Apache terms',
    who: '--subject user:counsel',
    osql: LICENSES,
  },
  {
    subject: 'agent:scout',
    about: 'an agent that acts for user:counsel: what both may see',
    who: '--subject agent:scout --chain user:counsel,agent:scout',
    osql: LICENSES,
  },
  {
    subject: 'user:admin',
    about: 'packages, and nothing about people',
    who: '--subject user:admin',
    osql: 'select measure(package_count) as packages, measure(install_bytes) as bytes from osl.entities.package',
  },
];

const MOST_SUBJECTS = 8;

/** Something that every subject with a grant may ask, whatever the manifest is. */
export function genericExamples({ manifest, snapshot }: Model): readonly Example[] {
  const subjects = [...(snapshot?.subjects ?? [])].slice(0, MOST_SUBJECTS);
  return subjects.flatMap(([subject, { ceiling }]) => {
    const granted = [...ceiling].flatMap((role) => [...(snapshot?.roles.get(role)?.grants.keys() ?? [])]);
    const entity = granted.find((name) => manifest.entities.has(name));
    if (entity === undefined || !/^[a-z_][a-z0-9_]*$/.test(entity)) return [];
    const osql = `select * from osl.entities.${entity} limit 5`;
    return [{ subject, about: `roles ${[...ceiling].join(', ')}`, who: `--subject ${subject}`, osql }];
  });
}
