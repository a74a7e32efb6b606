import { BaseImage, BUILT_IMAGES } from './base-image.js';

/** Run by `npm run build`; does nothing if the image exists. The process's exit ends the thread. */
await new BaseImage(BUILT_IMAGES, null).ready();
