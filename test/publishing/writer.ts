import { type NewVersion, VersionStore } from '../../src/model/versions/versions.js';

/** A process that publishes one version after the other into `argv[2]`, says each one's number, and waits to be killed. */
const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error('which directory?');
const versions = await VersionStore.open(dir);
await versions.sweep();
process.stdout.write(`open ${versions.head?.number ?? 0}\n`);
for (;;) {
  const next = versions.next(content((versions.head?.number ?? 0) + 1));
  await versions.append(next);
  process.stdout.write(`wrote ${next.version.number}\n`);
}

function content(number: number): NewVersion {
  const metric = { entity: 'order', expression: `max(quantity) + ${number}`, description: 'x'.repeat(3_000) };
  return {
    at: new Date().toISOString(),
    author: { subject: 'user:root', chain: ['user:root'] },
    request_id: `${number}`,
    action: 'publish',
    draft: null,
    restores: null,
    base: 'file',
    manifest: `m${number}`,
    policy: 'p',
    changes: [],
    access: [],
    objects: { metrics: { last: metric } },
    over: { 'metrics.last': null },
  };
}
