import type { Installation, Package } from './installation.js';

export type Value = string | number | bigint | boolean | null;
export type Rows = readonly (readonly Value[])[];

export interface Asked {
  /** In English, as a user would say it. */
  readonly question: string;
  readonly sql: string;
  /** The answer, computed without SQL. */
  readonly answer: (i: Installation) => Rows;
  readonly parameters?: readonly (string | number | boolean | null)[];
  /** `auditor`, who sees everything, unless told. */
  readonly as?: 'analyst' | 'counsel';
}

const one = (...values: readonly Value[]): Rows => [values];
const sum = <T>(list: readonly T[], f: (item: T) => number): number => list.reduce((s, x) => s + f(x), 0);
const distinct = <T>(list: readonly T[]): T[] => [...new Set(list)];
/** As a database with C collation compares. */
const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
const byText =
  <T>(f: (item: T) => string) =>
  (a: T, b: T): number =>
    compare(f(a), f(b));
const byMost =
  <T>(f: (item: T) => number) =>
  (a: T, b: T): number =>
    f(b) - f(a);
const both =
  <T>(...orders: readonly ((a: T, b: T) => number)[]) =>
  (a: T, b: T): number => {
    for (const order of orders) {
      const result = order(a, b);
      if (result !== 0) return result;
    }
    return 0;
  };
const byPath = byText<Package>((p) => p.path);

function grouped<T>(list: readonly T[], key: (item: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const known = groups.get(key(item));
    if (known === undefined) groups.set(key(item), [item]);
    else known.push(item);
  }
  return [...groups].sort(byText(([k]) => k));
}

/** `numerator / denominator` with two decimals, halves up, as round(numeric, 2) writes it. */
function ratio(numerator: number, denominator: number): string {
  const hundredths = (200n * BigInt(numerator) + BigInt(denominator)) / (2n * BigInt(denominator));
  return `${hundredths / 100n}.${String(hundredths % 100n).padStart(2, '0')}`;
}

const scope = (p: Package): string | null => (p.name.startsWith('@') ? (p.name.split('/')[0] ?? null) : null);
const within = (i: Installation, path: string): Package => {
  const found = i.packages.find((p) => p.path === path);
  if (found === undefined) throw new Error(`${path} is not installed`);
  return found;
};
const named = (i: Installation, id: string): string => i.people.find((p) => p.id === id)?.name ?? '';

export const QUESTIONS: readonly Asked[] = [
  // ---- counting
  {
    question: 'How many packages are installed?',
    sql: 'select count(*) from package',
    answer: (i) => one(i.packages.length),
  },
  {
    question: 'How many different names are there?',
    sql: 'select count(distinct name) from package',
    answer: (i) => one(distinct(i.packages.map((p) => p.name)).length),
  },
  {
    question: 'How many packages are for development only?',
    sql: 'select count(*) from package where dev',
    answer: (i) => one(i.packages.filter((p) => p.dev).length),
  },
  {
    question: 'How many are needed to run it?',
    sql: 'select count(*) as needed from package where not dev and not optional',
    answer: (i) => one(i.packages.filter((p) => !p.dev && !p.optional).length),
  },
  {
    question: 'How many ship types, and how many do not?',
    sql: 'select has_types, count(*) from package group by has_types order by has_types',
    answer: (i) => [false, true].map((b) => [b, i.packages.filter((p) => p.hasTypes === b).length]),
  },
  {
    question: 'How many packages state no homepage?',
    sql: 'select count(*) from package where homepage is null',
    answer: (i) => one(i.packages.filter((p) => p.homepage === null).length),
  },
  {
    question: 'How many state one, counted by the column?',
    sql: 'select count(homepage), count(*) - count(homepage) as missing from package',
    answer: (i) => {
      const stated = i.packages.filter((p) => p.homepage !== null).length;
      return one(stated, i.packages.length - stated);
    },
  },
  {
    question: 'How many people are named?',
    sql: 'select count(*) from person',
    answer: (i) => one(i.people.length),
  },
  {
    question: 'How many of them give an address?',
    sql: 'select count(email) from person',
    answer: (i) => one(i.people.filter((p) => p.email !== null).length),
  },
  {
    question: 'Is anything nested?',
    sql: "select count(*) > 0 from package where path like '%/node_modules/%'",
    answer: (i) => one(i.packages.some((p) => p.path.includes('/node_modules/'))),
  },

  // ---- sums, averages, extremes
  {
    question: 'How many bytes are installed?',
    sql: 'select sum(install_bytes) from package',
    answer: (i) => one(sum(i.packages, (p) => p.bytes)),
  },
  {
    question: 'How many files?',
    sql: 'select sum(file_count) from package',
    answer: (i) => one(sum(i.packages, (p) => p.files)),
  },
  {
    question: 'What is the size of an average package, in kilobytes?',
    sql: 'select round(avg(install_bytes) / 1000, 2) from package',
    answer: (i) =>
      one(
        ratio(
          sum(i.packages, (p) => p.bytes),
          i.packages.length * 1000,
        ),
      ),
  },
  {
    question: 'What are the smallest and largest numbers of files?',
    sql: 'select min(file_count), max(file_count) from package',
    answer: ({ packages }) =>
      one(Math.min(...packages.map((p) => p.files)), Math.max(...packages.map((p) => p.files))),
  },
  {
    question: 'What is the median number of files?',
    sql: 'select percentile_disc(0.5) within group (order by file_count) from package',
    answer: ({ packages }) => {
      const sorted = packages.map((p) => p.files).sort((a, b) => a - b);
      return one(sorted[Math.ceil(sorted.length / 2) - 1] ?? null);
    },
  },
  {
    question: 'How many bytes in all, and of these for development?',
    sql: 'select sum(install_bytes), sum(install_bytes) filter (where dev) from package',
    answer: (i) =>
      one(
        sum(i.packages, (p) => p.bytes),
        sum(
          i.packages.filter((p) => p.dev),
          (p) => p.bytes,
        ),
      ),
  },
  {
    question: 'Sum of nothing?',
    sql: "select sum(install_bytes), count(*), max(name) from package where name = 'no such package'",
    answer: () => one(null, 0, null),
  },

  // ---- groups
  {
    question: 'How many packages per licence?',
    sql: 'select license, count(*) from package group by license order by license',
    answer: (i) => grouped(i.packages, (p) => p.license).map(([k, g]) => [k, g.length]),
  },
  {
    question: 'How many per class of licence, most first?',
    sql: 'select license_class, count(*) as n from package group by 1 order by n desc, license_class',
    answer: (i) =>
      grouped(i.packages, (p) => p.licenseClass)
        .sort(byMost(([, g]) => g.length))
        .map(([k, g]) => [k, g.length]),
  },
  {
    question: 'Which licences have ten packages or more?',
    sql: 'select license from package group by license having count(*) >= 10 order by 1',
    answer: (i) =>
      grouped(i.packages, (p) => p.license)
        .filter(([, g]) => g.length >= 10)
        .map(([k]) => [k]),
  },
  {
    question: 'Bytes per licence class and kind of use?',
    sql: 'select license_class, dev, sum(install_bytes) from package group by license_class, dev order by 1, 2',
    answer: (i) =>
      grouped(i.packages, (p) => `${p.licenseClass} ${p.dev}`).map(([, g]) => [
        g[0]?.licenseClass ?? '',
        g[0]?.dev ?? false,
        sum(g, (p) => p.bytes),
      ]),
  },
  {
    question: 'Which packages are installed more than once?',
    sql: 'select name, count(*) from package group by name having count(*) > 1 order by count(*) desc, name',
    answer: (i) =>
      grouped(i.packages, (p) => p.name)
        .filter(([, g]) => g.length > 1)
        .sort(byMost(([, g]) => g.length))
        .map(([k, g]) => [k, g.length]),
  },
  {
    question: 'How many packages per scope?',
    sql: `select split_part(name, '/', 1) as scope, count(*) from package where name like '@%' group by scope order by scope`,
    answer: (i) =>
      grouped(
        i.packages.filter((p) => scope(p) !== null),
        (p) => scope(p) ?? '',
      ).map(([k, g]) => [k, g.length]),
  },
  {
    question: 'How many packages have 0, 1, 2, … dependents, up to 5?',
    sql: 'select dependents, count(*) from package where dependents <= 5 group by dependents order by dependents',
    answer: (i) =>
      grouped(
        i.packages.filter((p) => p.dependents <= 5),
        (p) => String(p.dependents),
      ).map(([k, g]) => [Number(k), g.length]),
  },
  {
    question: 'Small, middling and large packages?',
    sql: `select case when install_bytes < 10000 then 'small' when install_bytes < 1000000 then 'middling' else 'large' end as size,
             count(*) from package group by 1 order by 1`,
    answer: (i) =>
      grouped(i.packages, (p) =>
        p.bytes < 10_000 ? 'small' : p.bytes < 1_000_000 ? 'middling' : 'large',
      ).map(([k, g]) => [k, g.length]),
  },

  // ---- the most, the first
  {
    question: 'Which are the ten largest packages?',
    sql: 'select path, install_bytes from package order by install_bytes desc, path limit 10',
    answer: (i) =>
      [...i.packages]
        .sort(
          both(
            byMost((p) => p.bytes),
            byPath,
          ),
        )
        .slice(0, 10)
        .map((p) => [p.path, p.bytes]),
  },
  {
    question: 'And the next five?',
    sql: 'select path from package order by install_bytes desc, path limit 5 offset 10',
    answer: (i) =>
      [...i.packages]
        .sort(
          both(
            byMost((p) => p.bytes),
            byPath,
          ),
        )
        .slice(10, 15)
        .map((p) => [p.path]),
  },
  {
    question: 'On which package do most depend?',
    sql: 'select name, dependents from package order by dependents desc, path fetch first 1 row only',
    answer: (i) =>
      [...i.packages]
        .sort(
          both(
            byMost((p) => p.dependents),
            byPath,
          ),
        )
        .slice(0, 1)
        .map((p) => [p.name, p.dependents]),
  },
  {
    question: 'The first five packages that need a Node version, those that say nothing last?',
    sql: 'select path, engines_node from package order by engines_node nulls last, path limit 5',
    answer: (i) =>
      i.packages
        .filter((p) => p.engines !== null)
        .sort(
          both(
            byText((p: Package) => p.engines ?? ''),
            byPath,
          ),
        )
        .slice(0, 5)
        .map((p) => [p.path, p.engines]),
  },
  {
    question: 'The largest package of each licence class?',
    sql: 'select distinct on (license_class) license_class, path from package order by license_class, install_bytes desc, path',
    answer: (i) =>
      grouped(i.packages, (p) => p.licenseClass).map(([k, g]) => [
        k,
        g.sort(
          both(
            byMost((p) => p.bytes),
            byPath,
          ),
        )[0]?.path ?? null,
      ]),
  },

  // ---- filters
  {
    question: 'Which version of fastify is it?',
    sql: 'select version from package where path = $1',
    parameters: ['node_modules/fastify'],
    answer: (i) => one(within(i, 'node_modules/fastify').version),
  },
  {
    question: 'Of these three, which are installed?',
    sql: "select name from package where name in ('fastify', 'express', 'jose') order by name",
    answer: (i) => ['fastify', 'jose'].filter((n) => i.packages.some((p) => p.name === n)).map((n) => [n]),
  },
  {
    question: 'Whose licence is neither MIT nor ISC, and how many?',
    sql: "select count(*) from package where license not in ('MIT', 'ISC')",
    answer: (i) => one(i.packages.filter((p) => !['MIT', 'ISC'].includes(p.license)).length),
  },
  {
    question: 'Names that begin with pg?',
    sql: "select distinct name from package where name like 'pg%' order by name",
    answer: (i) =>
      distinct(i.packages.map((p) => p.name).filter((n) => n.startsWith('pg')))
        .sort(compare)
        .map((n) => [n]),
  },
  {
    question: 'Names with an underscore or a percent sign?',
    sql: "select count(*) from package where name like '%\\_%' or name like '%!%%' escape '!'",
    answer: (i) => one(i.packages.filter((p) => /[_%]/.test(p.name)).length),
  },
  {
    question: 'Names that hold "stream", in whatever case?',
    sql: "select count(*) from package where name ilike '%STREAM%'",
    answer: (i) => one(i.packages.filter((p) => /stream/i.test(p.name)).length),
  },
  {
    question: 'Versions below 1.0?',
    sql: "select count(*) from package where version ~ '^0\\.'",
    answer: (i) => one(i.packages.filter((p) => p.version.startsWith('0.')).length),
  },
  {
    question: 'Packages of 10 to 20 files?',
    sql: 'select count(*) from package where file_count between $1 and $2',
    parameters: [10, 20],
    answer: (i) => one(i.packages.filter((p) => p.files >= 10 && p.files <= 20).length),
  },
  {
    question: 'Packages that ship types or are optional, but not both?',
    sql: 'select count(*) from package where has_types <> optional',
    answer: (i) => one(i.packages.filter((p) => p.hasTypes !== p.optional).length),
  },
  {
    question: 'Who says nothing of Node, or wants 18 or 20?',
    sql: "select count(*) from package where engines_node is null or engines_node in ('>=18', '>=20')",
    answer: (i) =>
      one(i.packages.filter((p) => p.engines === null || ['>=18', '>=20'].includes(p.engines)).length),
  },

  // ---- expressions
  {
    question: 'The three longest names, and how long they are?',
    sql: 'select distinct name, length(name) from package order by length(name) desc, name limit 3',
    answer: (i) =>
      distinct(i.packages.map((p) => p.name))
        .sort(
          both(
            byMost((n: string) => n.length),
            compare,
          ),
        )
        .slice(0, 3)
        .map((n) => [n, n.length]),
  },
  {
    question: 'Major versions of what is called typescript or tap?',
    sql: "select name, split_part(version, '.', 1)::int4 as major from package where name in ('typescript', 'tap') order by 1, 2",
    answer: (i) =>
      i.packages
        .filter((p) => ['typescript', 'tap'].includes(p.name))
        .sort(byText((p) => p.name))
        .map((p) => [p.name, Number(p.version.split('.')[0])]),
  },
  {
    question: 'Homepages of four packages, or a dash?',
    sql: "select name, coalesce(homepage, '-') from package where path in ('node_modules/pg', 'node_modules/jose', 'node_modules/yaml', 'node_modules/osl-compiler') order by path",
    answer: (i) =>
      ['jose', 'osl-compiler', 'pg', 'yaml'].map((n) => [n, within(i, `node_modules/${n}`).homepage ?? '-']),
  },
  {
    question: 'Name and version of three packages as npm writes them?',
    sql: "select upper(left(name, 1)) || substring(name, 2) || '@' || version from package where name = any (array['pino', 'commander', 'ajv']) and path not like '%/node_modules/%' order by name",
    answer: (i) =>
      ['ajv', 'commander', 'pino'].map((n) => [
        `${n.slice(0, 1).toUpperCase()}${n.slice(1)}@${within(i, `node_modules/${n}`).version}`,
      ]),
  },
  {
    question: 'Bytes per file of the largest package, rounded?',
    sql: 'select round(install_bytes::numeric / nullif(file_count, 0), 2) from package order by install_bytes desc, path limit 1',
    answer: (i) => {
      const [p] = [...i.packages].sort(
        both(
          byMost((x) => x.bytes),
          byPath,
        ),
      );
      return one(p === undefined ? null : ratio(p.bytes, p.files));
    },
  },
  {
    question: 'All names of two licences in one text?',
    sql: "select license, string_agg(name, ', ' order by path) from package where license in ('CC0-1.0', 'BSD-2-Clause') group by license order by 1",
    answer: (i) =>
      grouped(
        i.packages.filter((p) => ['CC0-1.0', 'BSD-2-Clause'].includes(p.license)),
        (p) => p.license,
      ).map(([k, g]) => [
        k,
        g
          .sort(byPath)
          .map((p) => p.name)
          .join(', '),
      ]),
  },

  // ---- joins
  {
    question: 'What does fastify need at run time?',
    sql: `select t.name, d.range from package f join dependency d on d.from_path = f.path join package t on t.path = d.to_path
          where f.name = 'fastify' and d.kind = 'prod' order by t.name`,
    answer: (i) =>
      i.dependencies
        .filter((d) => d.from === 'node_modules/fastify' && d.kind === 'prod')
        .map((d) => [within(i, d.to).name, d.range])
        .sort(byText(([n]) => String(n))),
  },
  {
    question: 'Who needs yaml?',
    sql: `select distinct f.path from package f join dependency d on d.from_path = f.path join package t on t.path = d.to_path
          where t.path = $1 order by 1`,
    parameters: ['node_modules/yaml'],
    answer: (i) =>
      distinct(i.dependencies.filter((d) => d.to === 'node_modules/yaml').map((d) => d.from))
        .sort(compare)
        .map((p) => [p]),
  },
  {
    question: 'How many dependencies of each kind are there?',
    sql: 'select d.kind, count(*) from package p join dependency d on d.from_path = p.path group by d.kind order by 1',
    answer: (i) => grouped(i.dependencies, (d) => d.kind).map(([k, g]) => [k, g.length]),
  },
  {
    question: 'Which packages need nothing and are needed by nothing?',
    sql: `select p.path from package p left join dependency d on d.from_path = p.path
          where d.from_path is null and p.dependents = 0 order by 1`,
    answer: (i) => {
      const from = new Set(i.dependencies.map((d) => d.from));
      return i.packages
        .filter((p) => !from.has(p.path) && p.dependents === 0)
        .map((p) => [p.path])
        .sort(byText(([p]) => String(p)));
    },
  },
  {
    question: 'Which five packages need most others?',
    sql: `select p.path, count(distinct d.to_path) as n from package p join dependency d on d.from_path = p.path
          group by p.path order by n desc, p.path limit 5`,
    answer: (i) =>
      grouped(i.dependencies, (d) => d.from)
        .map(([k, g]): [string, number] => [k, distinct(g.map((d) => d.to)).length])
        .sort(byMost(([, n]) => n))
        .slice(0, 5),
  },
  {
    question: 'Which permissive packages need one that is not?',
    sql: `select distinct f.path from package f join dependency d on f.path = d.from_path join package t on d.to_path = t.path
          where f.license_class = 'permissive' and t.license_class <> 'permissive' order by f.path`,
    answer: (i) =>
      distinct(
        i.dependencies
          .filter(
            (d) =>
              within(i, d.from).licenseClass === 'permissive' &&
              within(i, d.to).licenseClass !== 'permissive',
          )
          .map((d) => d.from),
      )
        .sort(compare)
        .map((p) => [p]),
  },
  {
    question: 'Who is named in most packages?',
    sql: `select p.id, p.name, count(distinct c.package_path) as n from person p join credit c on c.person_id = p.id
          group by p.id, p.name order by n desc, p.id limit 10`,
    answer: (i) =>
      grouped(i.credits, (c) => c.person)
        .map(([k, g]): [string, string, number] => [k, named(i, k), distinct(g.map((c) => c.path)).length])
        .sort(byMost(([, , n]) => n))
        .slice(0, 10),
  },
  {
    question: 'How many authors, maintainers and contributors?',
    sql: 'select c.role, count(distinct p.id) from credit c join person p on p.id = c.person_id group by c.role order by 1',
    answer: (i) =>
      grouped(i.credits, (c) => c.role).map(([k, g]) => [k, distinct(g.map((c) => c.person)).length]),
  },
  {
    question: 'How many packages name nobody?',
    sql: 'select count(*) from package p left join credit c on c.package_path = p.path where c.package_path is null',
    answer: (i) => {
      const credited = new Set(i.credits.map((c) => c.path));
      return one(i.packages.filter((p) => !credited.has(p.path)).length);
    },
  },
  {
    question: 'How many people wrote something that is not permissive?',
    sql: `select count(distinct c.person_id) from credit c join package k on c.package_path = k.path
          where c.role = 'author' and k.license_class <> 'permissive'`,
    answer: (i) =>
      one(
        distinct(
          i.credits
            .filter((c) => c.role === 'author' && within(i, c.path).licenseClass !== 'permissive')
            .map((c) => c.person),
        ).length,
      ),
  },
  {
    question: 'Addresses of those who are named in pg?',
    sql: `select distinct p.name, p.email from person p join credit c on c.person_id = p.id join package k on k.path = c.package_path
          where k.path = 'node_modules/pg' order by 1`,
    answer: (i) =>
      distinct(i.credits.filter((c) => c.path === 'node_modules/pg').map((c) => c.person))
        .map((id): [string, string | null] => [
          named(i, id),
          i.people.find((p) => p.id === id)?.email ?? null,
        ])
        .sort(byText(([n]) => n)),
  },

  // ---- metrics
  {
    question: 'The metrics, in one row?',
    sql: 'select measure(package_count), measure(install_bytes), measure(dependents) from package',
    answer: (i) =>
      one(
        i.packages.length,
        sum(i.packages, (p) => p.bytes),
        sum(i.packages, (p) => p.dependents),
      ),
  },
  {
    question: 'Packages and bytes per licence class?',
    sql: 'select license_class, measure(package_count) as n, measure(install_bytes) as bytes from package group by license_class order by 1',
    answer: (i) =>
      grouped(i.packages, (p) => p.licenseClass).map(([k, g]) => [k, g.length, sum(g, (p) => p.bytes)]),
  },
  {
    question: 'The share of packages with types and the bytes a file, per licence class?',
    sql: 'select license_class, round(measure(typed_share), 6)::float8 as share, round(measure(bytes_per_file))::float8 as bytes from package group by license_class order by 1',
    answer: (i) =>
      grouped(i.packages, (p) => p.licenseClass).map(([k, g]) => [
        k,
        Number((g.filter((p) => p.hasTypes).length / g.length).toFixed(6)),
        Math.round(sum(g, (p) => p.bytes) / sum(g, (p) => p.files)),
      ]),
  },
  {
    question: 'Licences whose packages are depended on a hundred times or more?',
    sql: "select license from package group by license having measure(dependents) >= 100 order by measure('dependents') desc",
    answer: (i) =>
      grouped(i.packages, (p) => p.license)
        .map(([k, g]): [string, number] => [k, sum(g, (p) => p.dependents)])
        .filter(([, n]) => n >= 100)
        .sort(byMost(([, n]) => n))
        .map(([k]) => [k]),
  },

  // ---- windows
  {
    question: 'The three largest packages of each licence class?',
    sql: `select license_class, path from (
            select license_class, path, row_number() over (partition by license_class order by install_bytes desc, path) as place from package
          ) ranked where place <= 3 order by license_class, place`,
    answer: (i) =>
      grouped(i.packages, (p) => p.licenseClass).flatMap(([k, g]) =>
        g
          .sort(
            both(
              byMost((p) => p.bytes),
              byPath,
            ),
          )
          .slice(0, 3)
          .map((p) => [k, p.path]),
      ),
  },
  {
    question: 'A running total of files over the first ten paths?',
    sql: 'select path, sum(file_count) over (order by path) from package order by path limit 10',
    answer: (i) => {
      const sorted = [...i.packages].sort(byPath);
      return sorted.slice(0, 10).map((p, n) => [p.path, sum(sorted.slice(0, n + 1), (x) => x.files)]);
    },
  },
  {
    question: 'How much larger is each of the top four than the next?',
    sql: `select path, install_bytes - lead(install_bytes) over (order by install_bytes desc, path) as ahead from package
          order by install_bytes desc, path limit 4`,
    answer: (i) => {
      const sorted = [...i.packages].sort(
        both(
          byMost((p) => p.bytes),
          byPath,
        ),
      );
      return sorted.slice(0, 4).map((p, n) => [p.path, p.bytes - (sorted[n + 1]?.bytes ?? 0)]);
    },
  },
  {
    question: 'What share of all bytes has the largest package, in per cent?',
    sql: `select round(100.0 * install_bytes / sum(install_bytes) over (), 2) from package order by install_bytes desc, path limit 1`,
    answer: (i) =>
      one(
        ratio(
          100 * Math.max(...i.packages.map((p) => p.bytes)),
          sum(i.packages, (p) => p.bytes),
        ),
      ),
  },

  // ---- queries in queries, sets
  {
    question: 'How many packages are larger than the average?',
    sql: 'select count(*) from package where install_bytes > (select avg(install_bytes) from package)',
    answer: (i) => {
      const average = sum(i.packages, (p) => p.bytes) / i.packages.length;
      return one(i.packages.filter((p) => p.bytes > average).length);
    },
  },
  {
    question: 'How many names occur in both production and development?',
    sql: `with used as (select name from package where not dev), tools as (select name from package where dev)
          select count(*) from (select name from used intersect select name from tools) x`,
    answer: (i) => {
      const dev = new Set(i.packages.filter((p) => p.dev).map((p) => p.name));
      return one(distinct(i.packages.filter((p) => !p.dev && dev.has(p.name)).map((p) => p.name)).length);
    },
  },
  {
    question: 'Licences of development only?',
    sql: 'select license from package where dev except select license from package where not dev order by 1',
    answer: (i) => {
      const used = new Set(i.packages.filter((p) => !p.dev).map((p) => p.license));
      return distinct(i.packages.filter((p) => p.dev && !used.has(p.license)).map((p) => p.license))
        .sort(compare)
        .map((l) => [l]);
    },
  },
  {
    question: 'The totals of development and production in two rows?',
    sql: `select 'development' as use, count(*) as n from package where dev
          union all select 'production', count(*) from package where not dev order by 1`,
    answer: (i) => [
      ['development', i.packages.filter((p) => p.dev).length],
      ['production', i.packages.filter((p) => !p.dev).length],
    ],
  },
  {
    question: 'How many packages need one that is licensed differently?',
    sql: `with pairs as (select f.path as path, f.license as mine, t.license as theirs
                         from package f join dependency d on d.from_path = f.path join package t on t.path = d.to_path)
          select count(distinct path) from pairs where mine <> theirs`,
    answer: (i) =>
      one(
        distinct(
          i.dependencies
            .filter((d) => within(i, d.from).license !== within(i, d.to).license)
            .map((d) => d.from),
        ).length,
      ),
  },
  {
    question: 'How many packages are needed for tests of others, by peers or optionally?',
    sql: "select count(*) from package where path in (select to_path from package p join dependency d on d.from_path = p.path where d.kind in ('peer', 'optional'))",
    answer: (i) =>
      one(
        distinct(i.dependencies.filter((d) => ['peer', 'optional'].includes(d.kind)).map((d) => d.to)).length,
      ),
  },
  {
    question: 'With a value that is missing?',
    sql: 'select count(*) from package where homepage = $1 or $1 is null',
    parameters: [null],
    answer: (i) => one(i.packages.length),
  },

  // ---- other callers
  {
    question: 'As an analyst: what addresses are there?',
    sql: 'select distinct email from person',
    as: 'analyst',
    answer: () => one('[redacted]'),
  },
  {
    question: 'As an analyst: how many addresses hold an @?',
    sql: "select count(*) from person where email like '%@%'",
    as: 'analyst',
    answer: () => one(0),
  },
  {
    question: 'As an analyst: how many people are named by their names?',
    sql: 'select count(distinct name) from person',
    as: 'analyst',
    answer: (i) => one(distinct(i.people.map((p) => p.name)).length),
  },
  {
    question: 'As counsel: which licences should I look at?',
    sql: 'select license, count(*) from package group by license order by license',
    as: 'counsel',
    answer: (i) =>
      grouped(
        i.packages.filter((p) => p.licenseClass !== 'permissive'),
        (p) => p.license,
      ).map(([k, g]) => [k, g.length]),
  },
  {
    question: 'As counsel: how many packages are there at all?',
    sql: 'select measure(package_count), measure(install_bytes) from package',
    as: 'counsel',
    answer: (i) => {
      const seen = i.packages.filter((p) => p.licenseClass !== 'permissive');
      return one(
        seen.length,
        sum(seen, (p) => p.bytes),
      );
    },
  },
];
