complete -c onbeat-viewer -l panel -d 'Panel to show first: Overview, Latency, Distribution, Shape, Throughput, Cache, SLO, Lateness, Timeline, Users, Requests or Compare; `all` with --screenshot: a picture of each, in files of their own' -r
complete -c onbeat-viewer -l theme -d 'Colours [default: as chosen last, at first as the system has them]' -r -f -a "system\t'As the system says'
light\t'Dark on light'
dark\t'Light on dark'"
complete -c onbeat-viewer -l size -d 'Size of the window in points' -r
complete -c onbeat-viewer -l range -d 'Range of time the numbers speak of, in seconds of the run, for example 12.5..20, or 12.5.. for all from there on' -r
complete -c onbeat-viewer -l filter -d 'Which requests the numbers speak of, for example \'ttft > 500ms && input > 8k\'' -r
complete -c onbeat-viewer -l screenshot -d 'Save a picture of the window once it is complete, and leave. No window is opened and no display needed; a file of this name is replaced' -r -F
complete -c onbeat-viewer -l scale -d 'Pixels to a point in the picture, from 1 to 4' -r
complete -c onbeat-viewer -l completions -d 'Print the completion script of a shell, and leave' -r -f -a "bash\t''
elvish\t''
fish\t''
powershell\t''
zsh\t''"
complete -c onbeat-viewer -l no-settings -d 'Neither read nor write the settings of earlier windows; also meant by `--screenshot`'
complete -c onbeat-viewer -l man -d 'Print the manual page, and leave'
complete -c onbeat-viewer -s h -l help -d 'Print help (see more with \'--help\')'
complete -c onbeat-viewer -s V -l version -d 'Print version'
