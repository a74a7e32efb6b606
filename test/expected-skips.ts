/** A test that does not run in CI, and why. Whatever else is skipped there fails it. */
interface ExpectedSkip {
  /** Below `test/`, without its ending. */
  readonly file: string;
  readonly name: string;
  readonly why: string;
}

const NEEDS_ROOT = 'a CI may not let its root mount a disk, or make namespaces';

const BESIDE = 'what it reads lies beside the repository on some machines only';

const NEEDS_BROWSER = 'a machine may have no Chromium, and none that could be installed';

const NEEDS_CITUS = 'a machine may not have the archive of Citus beside the repository';

const NEEDS_COQ = 'a machine may have no Coq';

export const EXPECTED_SKIPS: readonly ExpectedSkip[] = [
  {
    file: 'service/operations/standby-steps',
    name: 'RETRIEVE runs on a standby that has the index as it was checked',
    why: 'the server binaries that CI installs have no pgvector',
  },
  {
    file: 'service/distributed/citus-retrieve',
    name: 'RETRIEVE over Citus',
    why: 'a machine may have no Citus, and the server binaries that CI unpacks beside it have no pgvector',
  },
  {
    file: 'docs/site',
    name: 'a browser sees it, small and large, light and dark, and asks no other server',
    why: NEEDS_BROWSER,
  },
  {
    file: 'docs/site',
    name: 'the playground compiles in the browser what the gateway compiles, and sends nothing',
    why: NEEDS_BROWSER,
  },
  { file: 'console/ask', name: 'Ask, task by task', why: NEEDS_BROWSER },
  {
    file: 'console/ask',
    name: 'what others wrote is text: in rows, names, errors, passages and what is kept',
    why: NEEDS_BROWSER,
  },
  {
    file: 'console/ask-large',
    name: 'a million rows, a question that is cancelled, and screens of any size',
    why: NEEDS_BROWSER,
  },
  { file: 'console/oidc', name: 'signing in with a provider, in the browser', why: NEEDS_BROWSER },
  { file: 'console/shell', name: 'signing in, looking, and signing out', why: NEEDS_BROWSER },
  { file: 'console/states', name: 'states of the pages', why: NEEDS_BROWSER },
  { file: 'console/states', name: 'tokens that can be renewed are renewed unnoticed', why: NEEDS_BROWSER },
  {
    file: 'leakbench/holes',
    name: 'an unchanged copy leaks nothing, and with a cache neither',
    why: 'part of the nightly run',
  },
  { file: 'formal/formal', name: 'Coq accepts the proof', why: NEEDS_COQ },
  { file: 'formal/binding', name: 'the compiler and Postgres do as the model says', why: NEEDS_COQ },
  { file: 'proof/oracle/oracle', name: 'every cell is filled', why: 'so many questions are asked at night' },
  {
    file: 'surfaces/rest/arrow/pyarrow',
    name: 'another implementation reads the same values',
    why: 'no other reader of Arrow can be had from the packages that CI installs',
  },
  { file: 'service/distributed/citus', name: 'over Citus', why: NEEDS_CITUS },
  { file: 'service/distributed/citus-tpch', name: "TPC-H's queries over Citus", why: NEEDS_CITUS },
  { file: 'tools/init/citus', name: 'init and doctor on Citus', why: NEEDS_CITUS },
  { file: 'proof/citus/citus', name: 'proofs over Citus', why: NEEDS_CITUS },
  {
    file: 'proof/conformance/conformance',
    name: 'the table quotes the whole contract, in its order',
    why: BESIDE,
  },
  {
    file: 'content/quality',
    name: 'retrieval on chunk-spans is as good as it was, and every citation is right',
    why: BESIDE,
  },
  { file: 'content/quality', name: 'operators on banking77 are as good as they were', why: BESIDE },
  {
    file: 'service/operations/disk',
    name: 'a disk that is full once, and then stalls, is not an outage for ever',
    why: NEEDS_ROOT,
  },
  {
    file: 'service/operations/disk',
    name: 'where the settings say so, the process ends with a status of its own',
    why: NEEDS_ROOT,
  },
  {
    file: 'service/operations/restart',
    name: 'after kill -9 in a container the next container starts',
    why: NEEDS_ROOT,
  },
  {
    file: 'service/operations/outage',
    name: 'metrics may be read from where the setting says',
    why: 'a machine may have no address but loopback',
  },
  {
    file: 'tools/package/install',
    name: 'as the image runs it, its root read-only and its user nobody',
    why: NEEDS_ROOT,
  },
  {
    file: 'tools/package/compose',
    name: 'what compose.yaml starts, started one by one',
    why: NEEDS_ROOT,
  },
  {
    file: 'tools/package/deploy-files',
    name: 'one kustomization has all of them',
    why: 'no package of Debian has kubectl',
  },
  {
    file: 'tools/package/deploy-files',
    name: "the balancers' files are good ones",
    why: 'an image without HAProxy has no program that judges them',
  },
  {
    file: 'tools/package/deploy-files',
    name: 'systemd finds little that the unit could do',
    why: 'an image without systemd has no program that judges units',
  },
  {
    file: 'tools/package/install',
    name: 'systemd has nothing to say of the unit',
    why: 'an image without systemd has no program that judges units',
  },
];
