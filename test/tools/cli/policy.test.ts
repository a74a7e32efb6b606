import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { controlHouse, migrated, SKIP } from '../../control/support.js';
import { EXAMPLE, type Finished, osl, temporary } from './support.js';

t.test('policies in the control database', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  const policy = join(dir, 'policy.yaml');
  copyFileSync(join(EXAMPLE, 'manifest.yaml'), manifest);
  copyFileSync(join(EXAMPLE, 'policy.yaml'), policy);
  const first = readFileSync(policy, 'utf8');
  /** Without the analyst's role of the one subject that has it. */
  const second = first.replace(/(user:analyst: \{ ceiling: )\[[^\]]*\]/, '$1[]');
  t.not(second, first);
  const run = (args: readonly string[], cwd = dir, url = house.author): Promise<Finished> =>
    osl(['policy', ...args], { cwd, env: { OSL_CONTROL_URL: url } });

  t.match(await run(['history']), { code: 0 }, 'a tenant without a policy has an empty history');
  t.match(await run(['show']), { code: 1, stderr: /no policy is active/ });
  t.match(await run(['push', policy, '--comment', 'the first']), {
    code: 0,
    stderr: /kept as version 1/,
    stdout: /subject user:analyst\n {2}gains role analyst/,
  });
  t.match(await run(['show']), { code: 1 }, 'what is pushed serves nobody');
  t.match(await run(['activate', '1']), { code: 0, stderr: /version 1 is active \(activation 1\)/ });
  t.match(await run(['push', policy]), { code: 0, stderr: /version 1 has this text already/ });

  writeFileSync(policy, second);
  t.match(await run(['diff', 'policy.yaml']), { code: 0, stdout: /loses role analyst/ });
  t.match(await run(['push', policy, '--activate', '--author', 'maria', '--comment', 'ticket 4711']), {
    code: 0,
    stdout: /subject user:analyst\n {2}loses role analyst/,
    stderr: /kept as version 2\nversion 2 is active \(activation 2\)/,
  });
  t.equal((await run(['show'])).stdout, second);
  t.equal((await run(['show', '1'])).stdout, first);
  t.match(await run(['diff', '1']), { code: 0, stdout: /gains role analyst/ });

  writeFileSync(policy, second.replace('on: package', 'on: nothing_of_the_kind'));
  t.match(await run(['push', policy]), { code: 2, stderr: /policy\.yaml:\d+:\d+: error/ });
  t.match(await run(['diff', 'policy.yaml', '--json']), { code: 2, stdout: /"ok":false/ });

  t.match(await run(['rollback', '--comment', 'too much'], dir), {
    code: 0,
    stdout: /gains role analyst/,
    stderr: /version 1 is active \(activation 3\)/,
  });
  const elsewhere = temporary();
  t.match(
    await run(['rollback', '2'], elsewhere),
    { code: 0, stderr: /no .*manifest\.yaml: each gateway checks the policy by itself\nversion 2 is active/ },
    'where the manifest is not at hand',
  );
  t.match(await run(['rollback', '7']), { code: 2, stderr: /there is no version 7/ });
  t.match(await run(['activate', '2']), { code: 0, stderr: /active already/ });

  const { versions, activations } = JSON.parse((await run(['history', '--json'])).stdout);
  t.match(versions, [
    { number: 2, parent: 1, author: 'maria', comment: 'ticket 4711', login: house.roles.author },
    { number: 1, parent: null, comment: 'the first', digest: /^[0-9a-f]{64}$/ },
  ]);
  t.match(activations, [
    { number: 4, version: 2, action: 'rollback' },
    { number: 3, version: 1, action: 'rollback', comment: 'too much' },
    { number: 2, version: 2, action: 'activate', author: 'maria' },
    { number: 1, version: 1, action: 'activate' },
  ]);
  t.match(await run(['history']), { code: 0, stdout: /2 \*.*maria/ });

  writeFileSync(policy, `${second}\n# another\n`);
  t.match(
    await run(['push', policy], dir, house.gateway),
    { code: 2, stderr: /the role may not do this/ },
    'a gateway writes no policy',
  );
  t.match(await osl(['policy', 'history'], { cwd: dir }), { code: 2, stderr: /set OSL_CONTROL_URL/ });
  t.match(
    await osl(['policy', 'diff', policy, '--policy', join(EXAMPLE, 'policy.yaml')], { cwd: dir }),
    { code: 0, stdout: /loses role analyst/ },
    'files are compared without a control database',
  );

  const claimed = `${second}claims: required\n`;
  writeFileSync(policy, claimed);
  t.match(await run(['push', policy]), {
    code: 2,
    stderr: /there is no .*policy\.test\.yaml\n {2}hint: name it with --claims/,
  });
  const claims = join(dir, 'policy.test.yaml');
  writeFileSync(claims, 'version: 1\nclaims:\n  - never: { role: analyst, sees: package }\n');
  t.match(await run(['push', policy]), { code: 1, stderr: /1 of 1 claims not proved.*\nREFUTED/ });
  t.notMatch(await run(['history']), { stdout: /^3 /m }, 'it was not kept');
  writeFileSync(claims, 'version: 1\nclaims:\n  - never: { role: analyst, sees: person.email }\n');
  t.match(await run(['push', policy]), { code: 0, stderr: /all 1 claims are proved\nkept as version 3/ });
  t.match(await run(['activate', '3']), { code: 0, stderr: /all 1 claims are proved\nversion 3 is active/ });
  writeFileSync(claims, 'version: 1\nclaims:\n  - never: { role: analyst, sees: package }\n');
  t.match(
    await run(['activate', '2']),
    { code: 1, stderr: /REFUTED/ },
    'what serves requires it of its successor',
  );
  t.match(await run(['rollback', '1']), { code: 0 }, 'going back needs no proof');
});
