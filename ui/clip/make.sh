#!/usr/bin/env bash
# Draws the clip of the demo page: a minute of waves under a sun that moves, made
# of arithmetic alone. ui/public/demo holds what it drew, so that nobody needs
# ffmpeg who does not change this.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v ffmpeg >/dev/null || { echo "clip: needs ffmpeg (on Debian: apt-get install ffmpeg)" >&2; exit 1; }

# Half the height, and waves on it: the near one (below) covers the far one.
far='H*0.52+6*sin(X/23+T*0.9)+3*sin(X/9-T*1.3)'
near='H*0.68+9*sin(X/37-T*0.7)+4*sin(X/13+T*1.1)'
sun='lt(hypot(X-(W*0.15+T*W*0.7/60),Y-H*0.28-14*sin(T/10)),17)'
pick() { # SKY SUN FAR NEAR
  echo "if(gt(Y,$near),$4,if(gt(Y,$far),$3,if($sun,$2,$1)))"
}
ffmpeg -hide_banner -loglevel error -y -f lavfi -i "color=black:s=320x180:r=15:d=60,format=gbrp" -vf "
  geq=r='$(pick '30+60*Y/H' 255 24 11)':g='$(pick '60+90*Y/H' 214 120 84)':b='$(pick '110+70*Y/H' 120 150 112)',
  scale=640:360:flags=bilinear,format=yuv420p,
  drawbox=x=0:y=354:w=640:h=6:color=white@0.25:t=fill" \
  -c:v libvpx-vp9 -crf 44 -b:v 0 -g 60 -deadline good -cpu-used 4 -row-mt 0 -threads 1 \
  -fflags +bitexact -flags:v +bitexact -map_metadata -1 public/demo/tide.webm
ls -l public/demo/tide.webm
