import t from 'tap';
import { leafHash } from '../../audit/format.js';
import { Frontier } from '../../audit/frontier.js';
import { pathRanges, RunningRoot, rootFromPath } from '../../audit/tree.js';

/** The test vectors of the Certificate Transparency reference implementation (RFC 6962). */
const INPUTS = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
const PATHS = [
  {
    index: 0,
    size: 8,
    path: [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  },
  {
    index: 5,
    size: 8,
    path: [
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  },
  {
    index: 2,
    size: 3,
    path: ['fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125'],
  },
];

const leaves = INPUTS.map((hex) => leafHash(Buffer.from(`00${hex}`, 'hex')));

function path(index: number, of: readonly Buffer[]): Buffer[] {
  return pathRanges(index, of.length).map(({ start, end }) => {
    const running = new RunningRoot();
    for (const leaf of of.slice(start, end)) running.add(leaf);
    return running.root();
  });
}

t.test('the writer and the verifier compute the roots of RFC 6962', async (t) => {
  const frontier = Frontier.empty();
  const running = new RunningRoot();
  for (const [size, root] of ROOTS.entries()) {
    t.equal(frontier.size, size);
    t.equal(frontier.root().toString('hex'), root, `frontier of ${size}`);
    t.equal(running.root().toString('hex'), root, `running root of ${size}`);
    const leaf = leaves[size];
    if (leaf) {
      frontier.push(leaf.toString('latin1'));
      running.add(leaf);
    }
  }
});

t.test('inclusion paths are those of RFC 6962', async (t) => {
  for (const vector of PATHS) {
    const found = path(vector.index, leaves.slice(0, vector.size));
    t.same(
      found.map((hash) => hash.toString('hex')),
      vector.path,
    );
  }
});

t.test('every path leads to the root from its own index only', async (t) => {
  const many = Array.from({ length: 70 }, (_, i) => leafHash(Buffer.from([0, i])));
  for (let size = 1; size <= many.length; size += 1) {
    const tree = Frontier.empty();
    for (const leaf of many.slice(0, size)) tree.push(leaf.toString('latin1'));
    for (let index = 0; index < size; index += 1) {
      const leaf = many[index] ?? Buffer.alloc(0);
      const proof = path(index, many.slice(0, size));
      const root = rootFromPath(index, size, leaf, proof);
      if (!root?.equals(tree.root())) t.fail(`leaf ${index} of ${size}`);
      const other = rootFromPath((index + 1) % size, size, leaf, proof);
      if (size > 1 && other?.equals(tree.root()))
        t.fail(`leaf ${index} of ${size} proved at the wrong place`);
    }
  }
  t.equal(rootFromPath(3, 3, Buffer.alloc(32), []), null, 'an index beyond the tree');
  t.equal(rootFromPath(0, 2, Buffer.alloc(32), []), null, 'a path too short');
  t.equal(rootFromPath(0, 1, Buffer.alloc(32), [Buffer.alloc(32)]), null, 'a path too long');
});
