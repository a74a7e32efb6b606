import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'tap';
import { lockFingerprint } from '../../../cli/demo/package.js';
import { readSupplyChain } from '../../../cli/demo/read.js';
import { DemoProblem } from '../../../cli/demo/tables.js';

/** An installation with what real ones have: nesting, scopes, a link, another platform's package, symlinks. */
async function installation(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'osl-demo-'));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  const packages = {
    '': { name: 'top', dependencies: { a: '1' } },
    ws: { name: 'ours', version: '0.1.0', license: 'Apache-2.0', dependencies: { '@s/b': '*' } },
    'node_modules/ours': { resolved: 'ws', link: true },
    'node_modules/a': {
      version: '1.0.0',
      license: 'MIT',
      dependencies: { '@s/b': '^1' },
      peerDependencies: { '@s/b': '>=1' },
      engines: { node: '>=18' },
    },
    'node_modules/a/node_modules/@s/b': { version: '1.5.0', dependencies: { c: '2', a: '1' }, dev: true },
    'node_modules/@s/b': {
      version: '2.0.0',
      license: 'GPL-3.0-only',
      optionalDependencies: { absent: '1', c: '2' },
    },
    'node_modules/c': { name: 'real-c', version: '2.0.0', optional: true },
    'node_modules/absent': { version: '1.0.0', optional: true },
    'node_modules/../../etc': { version: '1.0.0' },
  };
  await write('package-lock.json', JSON.stringify({ lockfileVersion: 3, packages }));
  await write('ws/package.json', '{"name":"ours"}');
  await write(
    'node_modules/a/package.json',
    JSON.stringify({ types: 'a.d.ts', homepage: 'https://a.example', repository: 'x/a', author: 'Ada' }),
  );
  await write('node_modules/a/README.md', '# A\u0000\n');
  await write('node_modules/a/lib/readme.md', 'not this one');
  await write('node_modules/a/CHANGELOG', 'one');
  await write(
    'node_modules/a/node_modules/@s/b/package.json',
    '{"exports":{".":{"import":{"types":"./x.d.ts"}}}}',
  );
  await write('node_modules/@s/b/package.json', '{"repository":{"url":"git+ssh://git@github.com:x/b.git"}}');
  await write('node_modules/@s/b/test/node_modules/fixture.js', 'not counted');
  await write('node_modules/c/package.json', 'not json');
  await symlink(join(root, 'ws'), join(root, 'node_modules/ours'));
  await symlink(join(root, 'package-lock.json'), join(root, 'node_modules/c/link'));
  return root;
}

test('an installation is read as Node would use it', async (t) => {
  const root = await installation();
  t.teardown(() => rm(root, { recursive: true }));
  const seen: string[] = [];
  const chain = await readSupplyChain(root, (done, total) => seen.push(`${done}/${total}`));

  t.test('packages: what is installed, by path', async (t) => {
    t.strictSame(
      chain.packages.map((p) =>
        [
          p.path,
          p.name,
          p.version,
          p.license,
          p.dev,
          p.optional,
          p.file_count,
          p.has_types,
          p.dependents,
        ].join(' '),
      ),
      [
        'node_modules/@s/b @s/b 2.0.0 GPL-3.0-only false false 1 false 1',
        'node_modules/a a 1.0.0 MIT false false 4 true 1',
        'node_modules/a/node_modules/@s/b @s/b 1.5.0 UNKNOWN true false 1 true 1',
        'node_modules/c real-c 2.0.0 UNKNOWN false true 1 false 2',
        'node_modules/ours ours 0.1.0 Apache-2.0 false false 0 false 0',
      ],
    );
    t.match(chain.packages[1], {
      engines_node: '>=18',
      homepage: 'https://a.example',
      repository: 'https://github.com/x/a',
    });
    t.equal(chain.packages[0]?.repository, 'https://github.com/x/b');
    t.equal(chain.packages[3]?.install_bytes, 'not json'.length);
  });

  t.test('dependencies: the nearest one, each kind a row, the absent left out', async (t) => {
    t.strictSame(
      chain.dependencies.map((d) => [d.from_path, d.to_path, d.kind, d.range].join(' ')),
      [
        'node_modules/@s/b node_modules/c optional 2',
        'node_modules/a node_modules/a/node_modules/@s/b prod ^1',
        'node_modules/a node_modules/a/node_modules/@s/b peer >=1',
        'node_modules/a/node_modules/@s/b node_modules/c prod 2',
        'node_modules/a/node_modules/@s/b node_modules/a prod 1',
        'node_modules/ours node_modules/@s/b prod *',
      ],
    );
  });

  t.test('documents: of the top folder, without NUL', async (t) => {
    t.strictSame(chain.documents, [
      {
        id: 'node_modules/a#CHANGELOG',
        package_path: 'node_modules/a',
        kind: 'changelog',
        file: 'CHANGELOG',
        body: 'one',
      },
      {
        id: 'node_modules/a#README.md',
        package_path: 'node_modules/a',
        kind: 'readme',
        file: 'README.md',
        body: '# A',
      },
    ]);
  });

  t.test('progress counts to the end', async (t) => t.strictSame(seen.at(-1), '6/6'));

  t.test('the fingerprint is that of the lock file and of what npm notes', async (t) => {
    t.equal(await lockFingerprint(root), chain.fingerprint);
    await writeFile(join(root, 'node_modules/.package-lock.json'), '{}');
    t.not(await lockFingerprint(root), chain.fingerprint);
  });
});

test('a folder without a usable lock file is one clear line', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'osl-demo-'));
  t.teardown(() => rm(root, { recursive: true }));
  await t.rejects(readSupplyChain(root), DemoProblem);
  for (const text of ['', '[]', '{"lockfileVersion":1}']) {
    await writeFile(join(root, 'package-lock.json'), text);
    await t.rejects(readSupplyChain(root), { message: /npm 7 or newer/ });
  }
});

test('an installation of which nothing is on disk is an error, not a demo without rows', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'osl-demo-'));
  t.teardown(() => rm(root, { recursive: true }));
  const lock = { lockfileVersion: 3, packages: { '': {}, 'node_modules/a': { version: '1.0.0' } } };
  await writeFile(join(root, 'package-lock.json'), JSON.stringify(lock));
  await t.rejects(readSupplyChain(root), { name: 'DemoProblem', message: /none of the 1 packages/ });
});
