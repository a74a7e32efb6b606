declare module 'cytoscape-fcose' {
  import type { Ext } from 'cytoscape';

  const fcose: Ext;
  // biome-ignore lint/style/noDefaultExport: so the package has it
  export default fcose;
}
